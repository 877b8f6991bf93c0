package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parley-go/parley/checkpoint"
)

// ReencryptOptions are the options of [Reencrypt]. DataKeys are required.
type ReencryptOptions struct {
	// DataKeys are as [Options.DataKeys]: everything is sealed under the first one; the others open
	// what was sealed before.
	DataKeys [][]byte
	// FromPlain takes what is in plain text, too, which is otherwise refused: for the one run that
	// encrypts a ledger that was not. Later it would believe what somebody put there.
	FromPlain bool
	// Random is the randomness. Default: crypto/rand.
	Random io.Reader
}

// A ReencryptReport is what [Reencrypt] found. When Left and Unread are 0, nothing is sealed under
// another key than the first one, and the others can leave the ring.
type ReencryptReport struct {
	Sealed  int // interactions, decisions and runs that were sealed anew, with their rows
	Current int // those that were as they should be
	Left    int // those that somebody works on, or that changed meanwhile: run it again later
	Unread  int // those that cannot be read: damaged, or of a key that is not among the DataKeys
	// Problems are the first errors of what is Unread.
	Problems []error
}

// maxProblems bounds the Problems of a report.
const maxProblems = 16

// Reencrypt seals everything in a store under the first of the data keys (R37). It can be broken
// off at any place and run again, and beside gates that have the same keys with the same one first.
// A gate with another first key, or none, goes on writing as it is used to: close it before.
func Reencrypt(ctx context.Context, store checkpoint.Store, opts *ReencryptOptions) (report ReencryptReport, err error) {
	if store == nil || opts == nil || len(opts.DataKeys) == 0 {
		return report, errors.New("reencrypt: a store and data keys are needed")
	}
	r := &reencryption{store: store, fromPlain: opts.FromPlain, report: &report}
	random := opts.Random
	if random == nil {
		random = rand.Reader
	}
	vault, err := newVault(opts.DataKeys, random)
	if err != nil {
		return report, fmt.Errorf("reencrypt: %w", err)
	}
	proposed, err := vault.newLedger(random)
	if err != nil {
		return report, fmt.Errorf("reencrypt: %w", err)
	}
	ledger, member, err := store.Join(ctx, proposed)
	if err != nil {
		return report, fmt.Errorf("reencrypt: %w", err)
	}
	defer func() { err = errors.Join(err, member.Leave()) }()
	r.member, r.vault = member, vault.of(ledger.ID)
	if err := r.meta(ctx, ledger); err != nil {
		return report, fmt.Errorf("reencrypt: %w", err)
	}
	if err := r.records(ctx); err != nil {
		return report, fmt.Errorf("reencrypt: %w", err)
	}
	return report, nil
}

type reencryption struct {
	store     checkpoint.Store
	member    checkpoint.Member
	vault     *vault
	fromPlain bool
	report    *ReencryptReport
}

// source is the vault that opens stored data: none for plain text, where that is allowed.
func (r *reencryption) source(stored []byte) *vault {
	if r.fromPlain && (*vault)(nil).current(stored) {
		return nil
	}
	return r.vault
}

// meta seals the index key anew.
func (r *reencryption) meta(ctx context.Context, ledger checkpoint.Ledger) error {
	key, err := r.vault.openMeta(ledger)
	if errors.Is(err, errPlain) && r.fromPlain {
		key, err = (*vault)(nil).openMeta(ledger)
	}
	if err != nil {
		return fmt.Errorf("read ledger %x: %w", ledger.ID, err)
	}
	meta, err := r.vault.sealMeta(ledger.ID, key)
	if err != nil {
		return err
	}
	return r.store.Commit(ctx, &checkpoint.Batch{Owner: r.member.Owner(), Meta: meta})
}

func (r *reencryption) records(ctx context.Context) error {
	q := checkpoint.Query{Limit: 100}
	for {
		page, err := r.store.List(ctx, q)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			if err := r.record(ctx, record); err != nil {
				return err
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// record seals one record and its rows anew. Its error ends the whole; what concerns this record
// alone goes into the report.
func (r *reencryption) record(ctx context.Context, old checkpoint.Record) error {
	// A handler that runs writes the revision that comes next, and rows. One that begins meanwhile
	// has another epoch, which is a conflict.
	if held, err := r.held(ctx, old); held || err != nil {
		r.report.Left++
		return err
	}
	batch := &checkpoint.Batch{Owner: r.member.Owner()}
	if !r.vault.current(old.Data) {
		next, err := r.reseal(old)
		if err != nil {
			r.unread(err)
			return nil
		}
		batch.Time = r.member.Now(time.Time{})
		batch.Puts = []checkpoint.Put{{Record: next, Epoch: old.Claim.Epoch}}
	}
	changed, err := r.rows(ctx, old, batch)
	switch conflict := (*checkpoint.ConflictError)(nil); {
	case errors.As(err, &conflict):
		r.report.Left++
	case err != nil:
		return err
	case changed:
		r.report.Sealed++
	default:
		r.report.Current++
	}
	return nil
}

func (r *reencryption) unread(err error) {
	r.report.Unread++
	if len(r.report.Problems) < maxProblems {
		r.report.Problems = append(r.report.Problems, err)
	}
}

// held reports whether a handler runs.
func (r *reencryption) held(ctx context.Context, record checkpoint.Record) (bool, error) {
	if record.Claim.Owner == "" {
		return false, nil
	}
	return r.member.Alive(ctx, record.Claim.Owner)
}

// reseal returns the record's next revision, which differs in nothing else.
func (r *reencryption) reseal(old checkpoint.Record) (checkpoint.Record, error) {
	if isDecision(old) {
		d, err := r.source(old.Data).decodeDecision(old)
		if err != nil {
			return checkpoint.Record{}, err
		}
		d.Revision++
		return r.vault.encodeDecision(d)
	}
	if old.Status.Run() {
		run, err := r.source(old.Data).decodeRun(old)
		if err != nil {
			return checkpoint.Record{}, err
		}
		run.Revision++
		return r.vault.encodeRun(run)
	}
	in, err := r.source(old.Data).decode(old)
	if err != nil {
		return checkpoint.Record{}, err
	}
	in.Revision++
	return r.vault.encode(in)
}

// rowBytes is about how much of the rows one commit writes.
const rowBytes = 4 << 20

// rows adds the rows of the record to the batch and commits it, in several steps where there are
// many. It reports whether anything was to be written.
func (r *reencryption) rows(ctx context.Context, record checkpoint.Record, batch *checkpoint.Batch) (changed bool, err error) {
	size := 0
	commit := func() error {
		if len(batch.Puts)+len(batch.Rows) == 0 {
			return nil
		}
		changed = true
		if err := r.store.Commit(ctx, batch); err != nil {
			return err
		}
		batch, size = &checkpoint.Batch{Owner: r.member.Owner()}, 0
		return nil
	}
	const page = 100
	for from := ""; ; {
		rows, err := r.store.Rows(ctx, record.ID, from, page)
		switch {
		case errors.Is(err, checkpoint.ErrUnavailable) || ctx.Err() != nil:
			return changed, err
		case err != nil: // a damaged row keeps no other record from being sealed
			r.unread(err)
			return changed, commit()
		}
		for _, row := range rows {
			from = row.Name + "\x00" // the next name there can be
			if r.vault.current(row.Data) {
				continue
			}
			plain, err := r.source(row.Data).openRow(row)
			if err != nil {
				r.unread(err)
				continue
			}
			if row, err = r.vault.sealRow(plain); err != nil {
				return changed, err
			}
			batch.Rows = append(batch.Rows, checkpoint.RowPut{Row: row, Epoch: record.Claim.Epoch})
			if size += len(row.Data); size >= rowBytes {
				if err := commit(); err != nil {
					return changed, err
				}
			}
		}
		if len(rows) == 0 {
			return changed, commit()
		}
	}
}
