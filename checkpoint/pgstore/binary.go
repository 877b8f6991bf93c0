package pgstore

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// The binary forms of parameters: what the server's functions …recv read.

func bigint(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func byteaArray(values [][]byte) []byte {
	size := 0
	for _, v := range values {
		size += 4 + len(v)
	}
	buf := arrayHeader(pgtype.ByteaOID, len(values), size)
	for _, v := range values {
		if v == nil {
			buf = append(buf, 0xff, 0xff, 0xff, 0xff) // NULL
			continue
		}
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
		buf = append(buf, v...)
	}
	return buf
}

func bigintArray(values []int64) []byte {
	buf := arrayHeader(pgtype.Int8OID, len(values), 12*len(values))
	for _, v := range values {
		buf = binary.BigEndian.AppendUint32(buf, 8)
		buf = binary.BigEndian.AppendUint64(buf, uint64(v))
	}
	return buf
}

func smallintArray(values []int16) []byte {
	buf := arrayHeader(pgtype.Int2OID, len(values), 6*len(values))
	for _, v := range values {
		buf = binary.BigEndian.AppendUint32(buf, 2)
		buf = binary.BigEndian.AppendUint16(buf, uint16(v))
	}
	return buf
}

// arrayHeader begins an array of one dimension, with room for its elements.
func arrayHeader(oid uint32, n, size int) []byte {
	buf := make([]byte, 0, 20+size)
	if n == 0 {
		buf = binary.BigEndian.AppendUint32(buf, 0) // dimensions
		buf = binary.BigEndian.AppendUint32(buf, 0) // no NULLs
		return binary.BigEndian.AppendUint32(buf, oid)
	}
	buf = binary.BigEndian.AppendUint32(buf, 1)
	buf = binary.BigEndian.AppendUint32(buf, 1) // there may be NULLs
	buf = binary.BigEndian.AppendUint32(buf, oid)
	buf = binary.BigEndian.AppendUint32(buf, uint32(n))
	return binary.BigEndian.AppendUint32(buf, 1) // the index of the first one
}
