package boltstore

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Options configure a store. Nil Options and the zero Options are the defaults.
type Options struct {
	// Timeout is how long Open waits for another process to let go of the file, each of the two
	// times that it locks it; 0 means 3 seconds.
	Timeout time.Duration
	// ReadOnly opens an existing file to be read, beside others that only read. Commit returns
	// checkpoint.ErrReadOnly then.
	ReadOnly bool
	// AllowRollback opens a file of whose two meta pages one is damaged, and so perhaps without its
	// last commit: an answer can be unrecorded that was carried out already.
	AllowRollback bool
	// IdleFlush is how soon a lazy batch is made durable though no other commit came; 0 means 100
	// milliseconds.
	IdleFlush time.Duration
	// Logger is told of records that are left out of a list because they are damaged, and of a
	// compaction; nil means slog.Default().
	Logger *slog.Logger
	// Random is where the names of owners come from; nil means crypto/rand.Reader. It is read once,
	// by Open.
	Random io.Reader

	compactAbove int64 // free bytes; 0 means 64 MiB
	initialMap   int   // bytes; 0 means 1 GiB
}

// withDefaults returns a copy in which every field is set.
func (o *Options) withDefaults() (Options, error) {
	var set Options
	if o != nil {
		set = *o
	}
	if set.Timeout < 0 || set.IdleFlush < 0 {
		return Options{}, fmt.Errorf("open store: timeout %s or idle flush %s is negative", set.Timeout, set.IdleFlush)
	}
	set.Timeout = cmp.Or(set.Timeout, 3*time.Second)
	set.IdleFlush = cmp.Or(set.IdleFlush, 100*time.Millisecond)
	set.Logger = cmp.Or(set.Logger, slog.Default())
	set.compactAbove = cmp.Or(set.compactAbove, 64<<20)
	set.initialMap = cmp.Or(set.initialMap, 1<<30)
	if set.Random == nil {
		set.Random = rand.Reader
	}
	return set, nil
}

// bolt returns the settings of the database. Without a synced freelist a file that once was large
// stays fast to write; the price is a scan when it is opened. The large map keeps a growing file
// from waiting for readers; Windows would grow the file to it, and 32 bits have no room for it.
func (o *Options) bolt() *bolt.Options {
	set := &bolt.Options{
		Timeout:        o.Timeout,
		ReadOnly:       o.ReadOnly,
		FreelistType:   bolt.FreelistMapType,
		NoFreelistSync: true,
	}
	if !o.ReadOnly && runtime.GOOS != "windows" && strconv.IntSize == 64 {
		set.InitialMmapSize = o.initialMap
	}
	return set
}
