package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The parts of bbolt's file format that a walk over its pages reads; it is in the byte order of the
// machine that wrote it.
const (
	pageHead      = 16 // id 8, flags 2, count 2, overflow 4
	pageElement   = 16 // branch: position 4, key size 4, page 8; leaf: flags 4, position 4, key size 4, value size 4
	flagBranch    = 0x01
	flagLeaf      = 0x02
	elementBucket = 0x01
	bucketHead    = 16 // root page 8 (0: the bucket's only page follows), sequence 8
)

// checkPages reads every page of the file that bbolt would, without bbolt: on a damaged page bbolt
// panics in a goroutine of its own where nobody can recover, and on a cycle it overflows the stack.
// It takes about as long as bbolt's own scan when it opens a file. Nobody may write to the file
// meanwhile. What is wrong is reported as a [*FileError].
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
	w := &walk{file: f, meta: meta, seen: make([]bool, meta.highWater), todo: []visit{{id: meta.root}}}
	if err := w.run(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &FileError{Path: path, Reason: Damaged, Err: err}
	}
	return nil
}

// walk goes through the pages that can be reached from the root bucket.
type walk struct {
	file io.ReaderAt
	meta *boltMeta
	seen []bool
	todo []visit
	page []byte
}

// A visit is a page to go to, and the keys that it may have: from min on, and before max where that
// is set.
type visit struct {
	id       uint64
	min, max []byte
}

func (w *walk) run(ctx context.Context) error {
	for len(w.todo) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if err := w.visit(v); err != nil {
			return fmt.Errorf("page %d: %w", v.id, err)
		}
	}
	return nil
}

func (w *walk) visit(v visit) error {
	if v.id < 2 || v.id >= w.meta.highWater {
		return errors.New("outside the file")
	}
	offset, size := int64(v.id)*int64(w.meta.pageSize), int(w.meta.pageSize)
	if len(w.page) < size {
		w.page = make([]byte, size)
	}
	if _, err := w.file.ReadAt(w.page[:size], offset); err != nil {
		return err
	}
	if self := binary.NativeEndian.Uint64(w.page); self != v.id {
		return fmt.Errorf("says that it is page %d", self)
	}
	overflow := uint64(binary.NativeEndian.Uint32(w.page[12:]))
	if overflow >= w.meta.highWater-v.id {
		return errors.New("goes beyond the file")
	}
	for i := v.id; i <= v.id+overflow; i++ {
		if w.seen[i] {
			return errors.New("referred to twice")
		}
		w.seen[i] = true
	}
	p := &page{start: w.page[:size], whole: io.NewSectionReader(w.file, offset, int64(overflow+1)*int64(size))}
	return w.elements(p, v)
}

// elements checks the elements of one page, and notes the pages they refer to.
func (w *walk) elements(p *page, v visit) error {
	flags := binary.NativeEndian.Uint16(p.start[8:])
	count := int(binary.NativeEndian.Uint16(p.start[10:]))
	inline := v.id == 0
	if flags != flagBranch && flags != flagLeaf || flags == flagBranch && (count == 0 || inline) {
		return fmt.Errorf("type %#x with %d elements", flags, count)
	}
	table, err := p.read(pageHead, int64(count)*pageElement)
	if err != nil {
		return fmt.Errorf("table of elements: %w", err)
	}
	first, last := len(w.todo), []byte(nil)
	for i := range count {
		e := table[i*pageElement:][:pageElement]
		at := int64(pageHead + i*pageElement)
		key, err := w.element(p, e, at, flags == flagBranch, inline)
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if i == 0 && bytes.Compare(key, v.min) < 0 || i > 0 && bytes.Compare(key, last) <= 0 ||
			v.max != nil && bytes.Compare(key, v.max) >= 0 {
			return fmt.Errorf("element %d: out of order", i)
		}
		last = key
	}
	if flags == flagBranch {
		for i := range w.todo[first:] {
			w.todo[first+i].max = v.max
			if first+i+1 < len(w.todo) {
				w.todo[first+i].max = w.todo[first+i+1].min
			}
		}
	}
	return nil
}

// element checks the element e that stands at a position of the page, and returns a copy of its
// key.
func (w *walk) element(p *page, e []byte, at int64, branch, inline bool) (key []byte, err error) {
	if branch {
		key, err = p.read(at+int64(binary.NativeEndian.Uint32(e)), int64(binary.NativeEndian.Uint32(e[4:])))
		key = bytes.Clone(key)
		w.todo = append(w.todo, visit{id: binary.NativeEndian.Uint64(e[8:]), min: key})
		return key, err
	}
	position, size := at+int64(binary.NativeEndian.Uint32(e[4:])), int64(binary.NativeEndian.Uint32(e[8:]))
	if key, err = p.read(position, size); err != nil {
		return nil, err
	}
	key = bytes.Clone(key)
	value, size := position+size, int64(binary.NativeEndian.Uint32(e[12:]))
	if value+size > p.whole.Size() {
		return nil, errBeyond
	}
	if binary.NativeEndian.Uint32(e)&elementBucket == 0 {
		return key, nil
	}
	if inline {
		return nil, errors.New("a bucket in an inline bucket")
	}
	return key, w.bucket(io.NewSectionReader(p.whole, value, size))
}

// bucket checks the value of an element that is a bucket: where its pages are, or the one page
// itself.
func (w *walk) bucket(value *io.SectionReader) error {
	b := make([]byte, value.Size())
	if len(b) < bucketHead || len(b) > bucketHead+int(w.meta.pageSize) {
		return fmt.Errorf("a bucket of %d bytes", len(b))
	}
	if _, err := value.ReadAt(b, 0); err != nil {
		return fmt.Errorf("read bucket: %w", err)
	}
	if root := binary.NativeEndian.Uint64(b); root != 0 {
		w.todo = append(w.todo, visit{id: root})
		return nil
	}
	if len(b) < bucketHead+pageHead {
		return fmt.Errorf("a bucket of %d bytes", len(b))
	}
	p := &page{start: b[bucketHead:], whole: io.NewSectionReader(value, bucketHead, value.Size()-bucketHead)}
	return w.elements(p, visit{})
}

// A page is its beginning, which was read, and all of it.
type page struct {
	start []byte
	whole *io.SectionReader
}

var errBeyond = errors.New("goes beyond the page")

// read returns a part of the page, which is the page's own where it is near the beginning.
func (p *page) read(at, size int64) ([]byte, error) {
	if at+size > p.whole.Size() {
		return nil, errBeyond
	}
	if at+size <= int64(len(p.start)) {
		return p.start[at : at+size], nil
	}
	b := make([]byte, size)
	_, err := p.whole.ReadAt(b, at)
	return b, err
}
