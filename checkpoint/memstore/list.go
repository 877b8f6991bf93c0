package memstore

import (
	"context"
	"slices"

	"github.com/google/btree"

	"github.com/parley-go/parley/checkpoint"
)

// List implements [checkpoint.Store]. What a page costs depends on its limit, not on how many
// records there are: at most 1000 records are returned and a few thousand passed over, so a page
// may be shorter than its limit, even empty, and yet have a Next.
func (s *Store) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Page{}, err
	}
	after, err := q.Position()
	if err != nil {
		return checkpoint.Page{}, err
	}
	l := &listing{q: &q, after: after}
	s.mu.RLock()
	for _, tree := range s.index.orders(&q) {
		l.scan(tree)
	}
	s.mu.RUnlock()
	page := q.Page(l.found, l.reached)
	for i := range page.Records {
		page.Records[i].Data = slices.Clone(page.Records[i].Data)
	}
	return page, nil
}

// orders returns the trees in which the records of the query are; all of them are sorted alike.
func (x *index) orders(q *checkpoint.Query) (orders []*btree.BTreeG[*checkpoint.Record]) {
	if q.ByDue() {
		return append(orders, x.due)
	}
	if q.Live() {
		orders = append(orders, x.live)
	}
	if q.Ended() {
		orders = append(orders, x.ended)
	}
	return orders
}

// A listing is one page in the making.
type listing struct {
	q       *checkpoint.Query
	after   *checkpoint.Record  // nil: this is the first page
	found   []checkpoint.Record // with the data of the index
	reached *checkpoint.Record  // up to here every order was gone through; nil: to the end
}

// scan goes on behind the position after, until it has one match more than the limit (by which it
// is known that there is more) or has passed over too many.
func (l *listing) scan(tree *btree.BTreeG[*checkpoint.Record]) {
	from := l.after
	if from == nil {
		from = &checkpoint.Record{Scope: l.q.Scope}
	}
	count, passed := 0, 0
	tree.AscendGreaterOrEqual(from, func(r *checkpoint.Record) bool {
		if l.beyond(r) {
			return false
		}
		if l.after != nil && l.q.Compare(l.after, r) == 0 {
			return true
		}
		if l.q.Matches(r) {
			l.found = append(l.found, *r)
			count++
		} else {
			passed++
		}
		if count <= l.q.PageLimit() && passed < checkpoint.MaxPassed {
			return true
		}
		if l.reached == nil || l.q.Compare(r, l.reached) < 0 {
			l.reached = r
		}
		return false
	})
}

// beyond reports whether the record, and so all after it, is not asked for.
func (l *listing) beyond(r *checkpoint.Record) bool {
	if l.q.ByDue() {
		return r.Due.After(l.q.DueBefore)
	}
	return !l.q.Scope.IsZero() && l.q.Scope != r.Scope
}
