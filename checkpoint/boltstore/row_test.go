package boltstore_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// dataAsString has cmp compare data at once and not byte by byte.
var dataAsString = cmp.Transformer("data", func(data []byte) string { return string(data) })

func fullRecord() checkpoint.Record {
	return checkpoint.Record{
		ID: idOf(1), Revision: 1 << 40, Status: checkpoint.Running, Scope: checkpoint.Hash{1},
		Start: checkpoint.Hash{31: 2},
		Due:   time.UnixMilli(1_800_000_000_123).UTC(),
		Claim: checkpoint.Claim{Owner: "owner.1", Epoch: 1 << 50, Attempt: 3},
		Data:  []byte("data"),
	}
}

func TestRow(t *testing.T) {
	for name, change := range map[string]func(r *checkpoint.Record){
		"full": func(*checkpoint.Record) {},
		"bare": func(r *checkpoint.Record) {
			*r = checkpoint.Record{ID: r.ID, Revision: 1, Status: checkpoint.Open, Data: []byte{}}
		},
		"limit":   func(r *checkpoint.Record) { r.Data = make([]byte, 64<<10) },
		"large":   func(r *checkpoint.Record) { r.Data = make([]byte, 64<<10+1) },
		"largest": func(r *checkpoint.Record) { r.Data = make([]byte, 16<<20) },
		"owner":   func(r *checkpoint.Record) { r.Claim.Owner = string(bytes.Repeat([]byte("o"), 255)) },
	} {
		t.Run(name, func(t *testing.T) {
			want := fullRecord()
			change(&want)
			row, large := boltstore.EncodeRow(&want)
			got, err := boltstore.DecodeRow(want.ID, row, large)
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if diff := cmp.Diff(want, got, dataAsString); diff != "" {
				t.Fatalf("decode (-want +got):\n%s", diff)
			}
			if len(row) < 1000 {
				for at := range row {
					row[at] ^= 4
					if _, err := boltstore.DecodeRow(want.ID, row, large); err == nil {
						t.Fatalf("a flipped bit in byte %d was not noticed", at)
					}
					row[at] ^= 4
				}
			}
		})
	}
}

func FuzzDecodeRow(f *testing.F) {
	for _, size := range []int{0, 4, 70_000} {
		r := fullRecord()
		r.Data = bytes.Repeat([]byte("d"), size)
		row, large := boltstore.EncodeRow(&r)
		f.Add(row, large, false)
	}
	f.Fuzz(func(t *testing.T, row, large []byte, seal bool) {
		if seal {
			row = bytes.Clone(row)
			boltstore.SealRow(row)
		}
		r, err := boltstore.DecodeRow(idOf(1), row, large)
		if err != nil {
			if corrupt, ok := errors.AsType[*boltstore.CorruptError](err); !ok || corrupt.ID != idOf(1) {
				t.Fatalf("got %v, want a corrupt record", err)
			}
			return
		}
		again, againLarge := boltstore.EncodeRow(&r)
		if !bytes.Equal(row, again) {
			t.Fatalf("row %x is written as %x", row, again)
		}
		if len(againLarge) > 0 && !bytes.Equal(large, againLarge) {
			t.Fatal("large data is written otherwise")
		}
	})
}
