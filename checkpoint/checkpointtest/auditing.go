package checkpointtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/parley-go/parley/checkpoint"
)

var auditing = []promise{
	{"audit",
		"Audit returns the entries that come after seq, in the order of the commits and within a batch in its own, " +
			"numbered 1, 2, 3, …; at most limit.",
		func(t *testing.T, f *fixture) {
			f.wantAudit(0)
			f.wantAudit(7)
			f.audit("a", "b")
			with := puts(record(1))
			with.Audit = texts("c")
			f.commit(with)
			f.audit("d")
			f.wantAudit(0, "a", "b", "c", "d")
			f.wantNumbers(1, 4)
			f.wantAudit(1, "b", "c", "d")
			f.wantAudit(3, "d")
			f.wantAudit(4)
			f.wantAudit(math.MaxUint64)
			for limit := 1; limit < 6; limit++ {
				page, err := f.store.Audit(t.Context(), 1, limit)
				if err != nil || len(page) != min(limit, 3) || page[0].Seq != 2 {
					t.Fatalf("audit, limit %d: %d entries, error %v", limit, len(page), err)
				}
			}
			for _, limit := range []int{-1, 0, 1001} {
				if _, err := f.store.Audit(t.Context(), 0, limit); !errors.Is(err, checkpoint.ErrInvalidQuery) {
					t.Errorf("audit, limit %d: got %v, want ErrInvalidQuery", limit, err)
				}
			}
		}},
	{"audit of a conflict",
		"A batch that is a conflict appends nothing to the audit trail and trims nothing, and takes no number.",
		func(t *testing.T, f *fixture) {
			f.audit("a")
			for _, lazy := range []bool{false, true} {
				b := puts(next(record(1)))
				b.Lazy, b.Audit, b.TrimAudit = lazy, texts("x"), 1
				f.wantConflict(b, idOf(1))
			}
			f.audit("b")
			f.wantAudit(0, "a", "b")
		}},
	{"audit of lazy batches",
		"Audit sees every commit that returned, lazy ones too, in one order with the others.",
		func(t *testing.T, f *fixture) {
			f.put(record(1))
			f.audit("a")
			b := lazily(puts(next(record(1))))
			b.Audit = texts("b")
			f.commit(b)
			f.wantAudit(0, "a", "b")
			f.commit(lazily(&checkpoint.Batch{Audit: texts("c")}))
			f.audit("d")
			f.commit(lazily(&checkpoint.Batch{Audit: texts("e", "f")}))
			f.wantAudit(0, "a", "b", "c", "d", "e", "f")
		}},
	{"audit is durable",
		"The audit entries of a batch are as durable as the batch.",
		func(t *testing.T, f *fixture) {
			f.audit("a")
			f.commit(lazily(&checkpoint.Batch{Audit: texts("b")}))
			f.reopen()
			f.wantAudit(0, "a", "b")
			f.commit(lazily(&checkpoint.Batch{Audit: texts("c")}))
			f.audit("d")
			f.crash()
			f.wantAudit(0, "a", "b", "c", "d")
		}},
	{"audit is trimmed",
		"TrimAudit removes the audit entries up to and with this one; whoever goes on behind the last one it saw misses " +
			"none but those.",
		func(t *testing.T, f *fixture) {
			f.audit("a", "b", "c", "d", "e")
			f.commit(&checkpoint.Batch{TrimAudit: 2})
			f.wantAudit(0, "c", "d", "e")
			f.wantAudit(1, "c", "d", "e")
			f.commit(&checkpoint.Batch{TrimAudit: 1})
			f.commit(lazily(&checkpoint.Batch{TrimAudit: 3, Audit: texts("f")}))
			f.wantAudit(0, "d", "e", "f")
			f.wantNumbers(4, 6)
		}},
	{"audit is trimmed in steps",
		"TrimAudit removes at most MaxTrim entries, the oldest first.",
		func(t *testing.T, f *fixture) {
			const more = 5
			for range more {
				f.audit(slices.Repeat([]string{"x"}, checkpoint.MaxTrim/more)...)
			}
			f.audit("a", "b", "c")
			f.commit(&checkpoint.Batch{TrimAudit: checkpoint.MaxTrim + 2})
			f.wantAudit(0, "a", "b", "c")
			f.commit(&checkpoint.Batch{TrimAudit: checkpoint.MaxTrim + 2})
			f.wantAudit(0, "c")
		}},
	{"audit numbers do not come again",
		"A number is never given to another entry, also where all are removed and the store is opened again.",
		func(t *testing.T, f *fixture) {
			f.audit("a", "b")
			f.commit(&checkpoint.Batch{TrimAudit: 9})
			f.wantAudit(0)
			f.audit("c")
			f.wantAudit(0, "c")
			f.wantAudit(2, "c")
			f.wantNumbers(3, 3)
			f.commit(&checkpoint.Batch{TrimAudit: 3})
			f.reopen()
			f.audit("d")
			f.wantAudit(3, "d")
			f.wantAudit(4)
			f.wantNumbers(4, 4)
		}},
	{"audit is copied",
		"A store keeps nothing of an audit entry that it was given, and those it returns are the caller's to keep.",
		func(t *testing.T, f *fixture) {
			for n, lazy := range []bool{false, true} {
				mine := &checkpoint.Batch{Lazy: lazy, Audit: texts("data")}
				f.commit(mine)
				clear(mine.Audit[0])
				for range 2 {
					f.wantAudit(uint64(n), "data")
					page, _ := f.store.Audit(t.Context(), uint64(n), 1)
					clear(page[0].Data)
				}
			}
		}},
	{"audit is not usage",
		"Audit entries are not counted.",
		func(t *testing.T, f *fixture) {
			f.audit("a", "b")
			f.wantUsage(checkpoint.Hash{}, checkpoint.Usage{})
		}},
	{"audit while commits go on",
		"Whoever goes on behind the last entry it saw misses none and sees none twice, while others commit.",
		func(t *testing.T, f *fixture) {
			const each = 8
			done := make(chan struct{})
			var seen []checkpoint.AuditEntry
			read := make(chan error, 1)
			go func() { read <- follow(t.Context(), f.store, done, &seen) }()
			together(func(i int) {
				r := record(i)
				for n := range each {
					b := puts(r)
					b.Lazy, b.Audit = n%2 == 1, texts(fmt.Sprintf("%d.%d", i, n))
					if !won(t, f.store.Commit(t.Context(), b)) {
						t.Errorf("record %d, revision %d: conflict", i, r.Revision)
						return
					}
					r.Revision++
				}
			})
			close(done)
			if err := <-read; err != nil {
				t.Fatalf("audit: %v", err)
			}
			wantOrder(t, seen, each)
		}},
	{"malformed audit entries",
		"An audit entry that is empty, or has more than 256 KiB, is refused, and nothing of the batch written.",
		func(t *testing.T, f *fixture) {
			for _, entry := range [][]byte{nil, {}, make([]byte, checkpoint.MaxAudit+1)} {
				b := puts(record(1))
				b.Audit = [][]byte{[]byte("a"), entry}
				f.wantRefused(b)
			}
			f.wantAbsent(idOf(1))
			f.wantAudit(0)
			f.audit(string(make([]byte, checkpoint.MaxAudit)))
		}},
}

// follow reads the audit trail until done is closed and nothing more comes.
func follow(ctx context.Context, s checkpoint.Store, done <-chan struct{}, seen *[]checkpoint.AuditEntry) error {
	var after uint64
	for last := false; ; {
		page, err := s.Audit(ctx, after, 7)
		if err != nil {
			return err
		}
		if *seen = append(*seen, page...); len(page) > 0 {
			after = page[len(page)-1].Seq
			continue
		}
		if last {
			return nil
		}
		select {
		case <-done:
			last = true
		default:
		}
	}
}

// wantOrder fails the test where the entries are not all of what each writer wrote, in its order.
func wantOrder(t *testing.T, seen []checkpoint.AuditEntry, each int) {
	t.Helper()
	counts := make(map[int]int)
	for i, entry := range seen {
		var writer, n int
		if _, err := fmt.Sscanf(string(entry.Data), "%d.%d", &writer, &n); err != nil {
			t.Fatalf("audit: entry %q: %v", entry.Data, err)
		}
		if entry.Seq != uint64(i+1) || counts[writer] != n {
			t.Fatalf("audit: entry %d is number %d: %d of writer %d after %d others of it", i+1, entry.Seq, n, writer, counts[writer])
		}
		counts[writer]++
	}
	if len(seen) != writers*each {
		t.Fatalf("audit: %d entries, want %d", len(seen), writers*each)
	}
}

func texts(texts ...string) (entries [][]byte) {
	for _, s := range texts {
		entries = append(entries, []byte(s))
	}
	return entries
}

// audit commits audit entries and nothing else.
func (f *fixture) audit(entries ...string) {
	f.t.Helper()
	f.commit(&checkpoint.Batch{Time: epoch, Audit: texts(entries...)})
}

// wantAudit fails the case where the entries after seq are others, or are not numbered one after
// the other.
func (f *fixture) wantAudit(after uint64, want ...string) {
	f.t.Helper()
	page, err := f.store.Audit(f.t.Context(), after, 1000)
	if err != nil {
		f.t.Fatalf("audit: %v", err)
	}
	var got []string
	for i, entry := range page {
		if i > 0 && entry.Seq != page[i-1].Seq+1 || entry.Seq <= after {
			f.t.Fatalf("audit after %d: entry %d has number %d", after, i+1, entry.Seq)
		}
		got = append(got, string(entry.Data))
	}
	if !slices.Equal(want, got) {
		f.t.Fatalf("audit after %d: got %q, want %q", after, got, want)
	}
}

// wantNumbers fails the case where the first and the last entry have other numbers.
func (f *fixture) wantNumbers(first, last uint64) {
	f.t.Helper()
	page, err := f.store.Audit(f.t.Context(), 0, 1000)
	if err != nil || len(page) == 0 || page[0].Seq != first || page[len(page)-1].Seq != last {
		f.t.Fatalf("audit: %+v, error %v, want entries %d to %d", page, err, first, last)
	}
}
