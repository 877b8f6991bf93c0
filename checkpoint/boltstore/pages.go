package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The parts of bbolt's file format that a walk over its pages reads; it is in the byte order of the machine that wrote it.
const (
	pageHead      = 16 // id 8, flags 2, count 2, overflow 4
	pageElement   = 16 // branch: position 4, key size 4, page 8; leaf: flags 4, position 4, key size 4, value size 4
	metaSize      = 64 // magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8, high water 8, transaction 8, checksum 8
	metaMagic     = 0xED0CDAED
	metaVersion   = 2
	flagBranch    = 0x01
	flagLeaf      = 0x02
	elementBucket = 0x01
	bucketHead    = 16 // root page 8 (0: the bucket's only page follows), sequence 8
)

// checkSize reads the meta pages of the file and reports, as a [*FileError], that it has none or that it is shorter than they say.
func checkSize(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return &FileError{Path: path, Reason: NotDatabase, Err: errors.New("it is empty, or no regular file")}
	}
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

// checkPages reads every page of the file that bbolt would, without bbolt: on a damaged page bbolt panics in a goroutine of its own where
// nobody can recover, and on a cycle it overflows the stack. It takes about as long as bbolt's own scan when it opens a file. Nobody may
// write to the file meanwhile. What is wrong is reported as a [*FileError].
func checkPages(ctx context.Context, path string) error {
	if err := checkSize(path); err != nil {
		return err
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
	w := &walk{file: f, meta: meta, seen: make([]bool, meta.highWater), todo: []uint64{meta.root}}
	if err := w.run(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &FileError{Path: path, Reason: Damaged, Err: err}
	}
	return nil
}

type boltMeta struct {
	pageSize                     uint32
	root, highWater, transaction uint64
}

// readMeta finds the newer of the two meta pages that is whole. The second one stands at the page size, which is not known when the
// first one is damaged.
func readMeta(f io.ReaderAt) (*boltMeta, error) {
	var newest *boltMeta
	for _, offset := range append([]int64{0}, secondMetaOffsets()...) {
		var page [pageHead + metaSize]byte
		if _, err := f.ReadAt(page[:], offset); err != nil {
			break
		}
		m := parseMeta(page[pageHead:])
		if m == nil || offset != 0 && offset != int64(m.pageSize) {
			continue
		}
		if newest == nil || m.transaction > newest.transaction {
			newest = m
		}
	}
	if newest == nil {
		return nil, errors.New("it has no meta page")
	}
	return newest, nil
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

// walk goes through the pages that can be reached from the root bucket.
type walk struct {
	file io.ReaderAt
	meta *boltMeta
	seen []bool
	todo []uint64
	page []byte
}

func (w *walk) run(ctx context.Context) error {
	for len(w.todo) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		id := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if err := w.visit(id); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
	}
	return nil
}

func (w *walk) visit(id uint64) error {
	if id < 2 || id >= w.meta.highWater {
		return errors.New("outside the file")
	}
	offset, size := int64(id)*int64(w.meta.pageSize), int(w.meta.pageSize)
	if len(w.page) < size {
		w.page = make([]byte, size)
	}
	if _, err := w.file.ReadAt(w.page[:size], offset); err != nil {
		return err
	}
	if self := binary.NativeEndian.Uint64(w.page); self != id {
		return fmt.Errorf("says that it is page %d", self)
	}
	overflow := uint64(binary.NativeEndian.Uint32(w.page[12:]))
	if overflow >= w.meta.highWater-id {
		return errors.New("goes beyond the file")
	}
	for i := id; i <= id+overflow; i++ {
		if w.seen[i] {
			return errors.New("referred to twice")
		}
		w.seen[i] = true
	}
	total := int64(overflow+1) * int64(w.meta.pageSize)
	return w.elements(io.NewSectionReader(w.file, offset, total), w.page[:size], true)
}

// elements checks the table of elements of one page, of which start is the beginning, and notes the pages they refer to.
func (w *walk) elements(page *io.SectionReader, start []byte, buckets bool) error {
	flags := binary.NativeEndian.Uint16(start[8:])
	count := int(binary.NativeEndian.Uint16(start[10:]))
	if flags != flagBranch && flags != flagLeaf || flags == flagBranch && (count == 0 || !buckets) {
		return fmt.Errorf("type %#x with %d elements", flags, count)
	}
	table := start
	if size := pageHead + count*pageElement; size > len(table) {
		table = make([]byte, size)
		if _, err := page.ReadAt(table, 0); err != nil {
			return fmt.Errorf("read table of elements: %w", err)
		}
	}
	for i := range count {
		at := int64(pageHead + i*pageElement)
		e := table[at : at+pageElement]
		if flags == flagBranch {
			if at+int64(binary.NativeEndian.Uint32(e))+int64(binary.NativeEndian.Uint32(e[4:])) > page.Size() {
				return fmt.Errorf("element %d goes beyond the page", i)
			}
			w.todo = append(w.todo, binary.NativeEndian.Uint64(e[8:]))
			continue
		}
		value := at + int64(binary.NativeEndian.Uint32(e[4:])) + int64(binary.NativeEndian.Uint32(e[8:]))
		size := int64(binary.NativeEndian.Uint32(e[12:]))
		if value+size > page.Size() {
			return fmt.Errorf("element %d goes beyond the page", i)
		}
		if binary.NativeEndian.Uint32(e)&elementBucket == 0 {
			continue
		}
		if !buckets {
			return errors.New("a bucket in an inline bucket")
		}
		if err := w.bucket(io.NewSectionReader(page, value, size)); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// bucket checks the value of an element that is a bucket: where its pages are, or the one page itself.
func (w *walk) bucket(value *io.SectionReader) error {
	var b [bucketHead + pageHead]byte
	if n, err := value.ReadAt(b[:], 0); n < bucketHead {
		return fmt.Errorf("read bucket: %w", err)
	} else if root := binary.NativeEndian.Uint64(b[:]); root != 0 {
		w.todo = append(w.todo, root)
		return nil
	} else if n < len(b) {
		return errors.New("an inline bucket is too short")
	}
	return w.elements(io.NewSectionReader(value, bucketHead, value.Size()-bucketHead), b[bucketHead:], false)
}
