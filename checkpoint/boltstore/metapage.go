package boltstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The meta pages of bbolt's file format; they are in the byte order of the machine that wrote them.
const (
	// metaSize counts magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8,
	// high water 8, transaction 8, checksum 8.
	metaSize    = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
)

// checkSize reads the meta pages of the file and reports, as a [*FileError], that it has none or
// that it is shorter than they say.
func checkSize(path string) error {
	// Before it is opened: opening a pipe would wait for whoever writes to it.
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return &FileError{Path: path, Reason: NotDatabase, Err: errors.New("it is empty, or no regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	meta, err := readMeta(f)
	if err != nil {
		return &FileError{Path: path, Reason: NotDatabase, Err: err}
	}
	// Who grows a file does so before its meta page says it; so the size is asked for last.
	if info, err = f.Stat(); err != nil {
		return err
	}
	if info.Size()/int64(meta.pageSize) < int64(meta.highWater) {
		err := fmt.Errorf("%d bytes for %d pages of %d", info.Size(), meta.highWater, meta.pageSize)
		return &FileError{Path: path, Reason: Truncated, Err: err}
	}
	return nil
}

// boltMeta is what a meta page says.
type boltMeta struct {
	pageSize                     uint32
	root, highWater, transaction uint64
	alone                        bool // the other meta page is damaged
}

// readMeta finds the newer of the two meta pages that is whole. The second one stands at the page
// size, which is not known when the first one is damaged.
func readMeta(f io.ReaderAt) (*boltMeta, error) {
	var newest *boltMeta
	whole := 0
	for _, offset := range append([]int64{0}, secondMetaOffsets()...) {
		var page [pageHead + metaSize]byte
		if _, err := f.ReadAt(page[:], offset); err != nil {
			break
		}
		m := parseMeta(page[pageHead:])
		if m == nil || offset != 0 && offset != int64(m.pageSize) {
			continue
		}
		whole++
		if newest == nil || m.transaction > newest.transaction {
			newest = m
		}
	}
	if newest == nil {
		return nil, errors.New("it has no meta page")
	}
	newest.alone = whole < 2
	return newest, nil
}

// checkMeta reports, as a [*FileError], that one of the two meta pages is damaged. bbolt would go
// on from the other one: where the damaged one was the newer, without its last commit, which may
// have been an answer that was carried out. The file is held by the caller.
func checkMeta(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	meta, err := readMeta(f)
	if err == nil && meta.alone {
		err = errors.New("one of its two meta pages is; the last commit may be missing (see Options.AllowRollback)")
	}
	if err != nil {
		return &FileError{Path: path, Reason: Damaged, Err: err}
	}
	return nil
}

func secondMetaOffsets() (offsets []int64) {
	for shift := range 15 {
		offsets = append(offsets, 1024<<shift)
	}
	return offsets
}

func parseMeta(b []byte) *boltMeta {
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	m := &boltMeta{
		pageSize:    binary.NativeEndian.Uint32(b[8:]),
		root:        binary.NativeEndian.Uint64(b[16:]),
		highWater:   binary.NativeEndian.Uint64(b[40:]),
		transaction: binary.NativeEndian.Uint64(b[48:]),
	}
	ok := binary.NativeEndian.Uint32(b) == metaMagic &&
		binary.NativeEndian.Uint32(b[4:]) == metaVersion &&
		binary.NativeEndian.Uint64(b[metaSize-8:]) == sum.Sum64() &&
		m.pageSize >= 1024 && m.highWater < 1<<40
	if !ok {
		return nil
	}
	return m
}
