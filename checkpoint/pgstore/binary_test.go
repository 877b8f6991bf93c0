package pgstore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The binary forms are those that pgx reads.
func TestBinaryForms(t *testing.T) {
	types := pgtype.NewMap()
	for _, values := range [][][]byte{{}, {{}}, {nil, []byte("a"), {}, []byte("ab")}} {
		wantForm(t, types, pgtype.ByteaArrayOID, byteaArray(values), values)
	}
	for _, values := range [][]int64{{}, {0, -1, 1 << 62}} {
		wantForm(t, types, pgtype.Int8ArrayOID, bigintArray(values), values)
	}
	for _, values := range [][]int16{{}, {0, -1, 1 << 14}} {
		wantForm(t, types, pgtype.Int2ArrayOID, smallintArray(values), values)
	}
	wantForm(t, types, pgtype.Int8OID, bigint(-2), int64(-2))
}

func wantForm[T any](t *testing.T, types *pgtype.Map, oid uint32, form []byte, want T) {
	t.Helper()
	var got T
	if err := types.Scan(oid, pgx.BinaryFormatCode, form, &got); err != nil {
		t.Errorf("%v: %v", want, err)
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v: %s", want, diff)
	}
}
