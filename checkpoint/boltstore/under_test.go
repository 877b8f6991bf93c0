package boltstore_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/boltstore"
)

func TestUnder(t *testing.T) {
	id := idOf(1)
	key := append(id[:], "name"...)
	for name, size := range map[string]int{"empty": 0, "small": 10, "limit": 64 << 10, "large": 64<<10 + 1} {
		t.Run(name, func(t *testing.T) {
			want := bytes.Repeat([]byte("d"), size)
			value, large := boltstore.EncodeUnder(key, want)
			got, err := boltstore.DecodeUnder(key, value, large)
			if err != nil || got == nil || !bytes.Equal(want, got) {
				t.Fatalf("decode: %d bytes, error %v, want %d", len(got), err, size)
			}
			for at := range min(len(value), 100) {
				value[at] ^= 4
				if _, err := boltstore.DecodeUnder(key, value, large); err == nil {
					t.Fatalf("a flipped bit in byte %d was not noticed", at)
				}
				value[at] ^= 4
			}
			for _, other := range []string{"nama", "name\x00", ""} {
				if _, err := boltstore.DecodeUnder(append(id[:], other...), value, large); err == nil {
					t.Fatalf("a row under the name %q was not noticed", other)
				}
			}
		})
	}
}

func FuzzDecodeUnder(f *testing.F) {
	id := idOf(1)
	key := append(id[:], "name"...)
	for _, size := range []int{0, 4, 70_000} {
		value, large := boltstore.EncodeUnder(key, bytes.Repeat([]byte("d"), size))
		f.Add(key, value, large, false)
	}
	f.Fuzz(func(t *testing.T, key, value, large []byte, seal bool) {
		if seal {
			value = bytes.Clone(value)
			boltstore.SealUnder(key, value)
		}
		data, err := boltstore.DecodeUnder(key, value, large)
		if err != nil {
			if _, ok := errors.AsType[*boltstore.CorruptError](err); !ok {
				t.Fatalf("got %v, want a corrupt record", err)
			}
			return
		}
		again, againLarge := boltstore.EncodeUnder(key, data)
		if !bytes.Equal(value, again) || len(againLarge) > 0 && !bytes.Equal(large, againLarge) {
			t.Fatalf("row %x is written as %x", value, again)
		}
	})
}

func TestUsageCodec(t *testing.T) {
	for _, want := range []checkpoint.Usage{{}, {Active: 1, Bytes: 2}, {Active: math.MaxInt32, Bytes: math.MaxInt64}} {
		key, value := boltstore.EncodeUsage(checkpoint.Hash{3}, want)
		if scope, got, err := boltstore.DecodeUsage(key, value); err != nil || got != want || scope != (checkpoint.Hash{3}) {
			t.Errorf("decode: %+v of scope %x, error %v, want %+v", got, scope[:1], err, want)
		}
		for at := range value {
			value[at] ^= 4
			if _, _, err := boltstore.DecodeUsage(key, value); err == nil {
				t.Fatalf("a flipped bit in byte %d was not noticed", at)
			}
			value[at] ^= 4
		}
	}
}

func FuzzDecodeUsage(f *testing.F) {
	key, value := boltstore.EncodeUsage(checkpoint.Hash{3}, checkpoint.Usage{Active: 1, Bytes: 2})
	f.Add(key, value)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		scope, u, err := boltstore.DecodeUsage(key, value)
		if err != nil {
			return
		}
		if k, v := boltstore.EncodeUsage(scope, u); !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			t.Fatalf("usage %x under %x is written as %x under %x", value, key, v, k)
		}
	})
}

func FuzzDecodeAudit(f *testing.F) {
	key, value := boltstore.EncodeAudit(7, []byte("entry"))
	f.Add(key, value)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		entry, err := boltstore.DecodeAudit(key, value)
		if err != nil {
			return
		}
		if k, v := boltstore.EncodeAudit(entry.Seq, entry.Data); !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			t.Fatalf("audit entry %x under %x is written as %x under %x", value, key, v, k)
		}
	})
}
