package lines

import (
	"bufio"
	"io"
)

// A Reader reads whole lines and hands them on. It is for one goroutine, and keeps no more than one
// line.
type Reader struct {
	source *bufio.Reader
	most   int
	edit   func(line []byte) []byte
	rest   []byte // of the line that is being handed on
}

// NewReader returns a Reader that hands on what edit makes of each line, with its line feed;
// nothing leaves the line out. edit may keep the line, and return it. A line of more than most
// bytes is handed on unseen as far as it was read, since its reader gives up over it.
func NewReader(in io.Reader, most int, edit func(line []byte) []byte) *Reader {
	return &Reader{source: bufio.NewReaderSize(in, 64<<10), most: most, edit: edit}
}

// Read waits for a line where nothing is left of the one before.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.line()
		if err != nil {
			return 0, err
		}
		r.rest = line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *Reader) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := r.source.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == bufio.ErrBufferFull && len(line) <= r.most:
		case err == bufio.ErrBufferFull:
			return line, nil
		case err != nil && len(line) == 0:
			return nil, err
		default:
			return r.edit(line), nil
		}
	}
}
