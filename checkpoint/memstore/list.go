package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/btree"

	"github.com/parley-go/parley/checkpoint"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxPassed is how many records that do not match are passed over for one page, in each order that is gone through.
	maxPassed = 4096
)

// List implements [checkpoint.Store]. What a page costs depends on its limit, not on how many records there are: at most 1000
// records are returned and a few thousand passed over, so a page may be shorter than its limit, even empty, and yet have a Next.
func (s *Store) List(ctx context.Context, q checkpoint.Query) (checkpoint.Page, error) {
	if err := ctx.Err(); err != nil {
		return checkpoint.Page{}, err
	}
	after, err := parsePosition(&q)
	if err != nil {
		return checkpoint.Page{}, err
	}
	limit := min(cmp.Or(q.Limit, defaultLimit), maxLimit)
	found, next := s.page(&q, after, limit)
	page := checkpoint.Page{Next: next}
	for _, r := range found {
		page.Records = append(page.Records, copyOut(r))
	}
	return page, nil
}

// An order is one tree and how it is sorted.
type order struct {
	tree *btree.BTreeG[*checkpoint.Record]
	less btree.LessFunc[*checkpoint.Record]
}

// orders returns those in which the records of the query are; all of them are sorted alike.
func (x *index) orders(q *checkpoint.Query) []order {
	if !q.DueBefore.IsZero() {
		return []order{{x.due, lessDue}}
	}
	ended := func(s checkpoint.Status) bool { return s.Ended() }
	live := func(s checkpoint.Status) bool { return !s.Ended() }
	var orders []order
	if len(q.Statuses) == 0 || slices.ContainsFunc(q.Statuses, live) {
		orders = append(orders, order{x.live, lessPlace})
	}
	if len(q.Statuses) == 0 || slices.ContainsFunc(q.Statuses, ended) {
		orders = append(orders, order{x.ended, lessPlace})
	}
	return orders
}

// page returns the records of one page, in order and not copied, and the position after it.
func (s *Store) page(q *checkpoint.Query, after *checkpoint.Record, limit int) (found []*checkpoint.Record, next string) {
	var less btree.LessFunc[*checkpoint.Record]
	var bound *checkpoint.Record // up to here every order was gone through; nil: to the end
	s.mu.RLock()
	for _, o := range s.index.orders(q) {
		less = o.less
		matches, reached := o.scan(q, after, limit)
		found = append(found, matches...)
		if reached != nil && (bound == nil || less(reached, bound)) {
			bound = reached
		}
	}
	s.mu.RUnlock()

	slices.SortFunc(found, func(a, b *checkpoint.Record) int {
		if less(a, b) {
			return -1
		}
		return 1
	})
	if bound != nil {
		found = slices.DeleteFunc(found, func(r *checkpoint.Record) bool { return less(bound, r) })
	}
	if len(found) > limit {
		return found[:limit], formatPosition(q, found[limit-1])
	}
	if bound != nil {
		return found, formatPosition(q, bound)
	}
	return found, ""
}

// scan goes on behind the position after, until it has one match more than limit (by which the caller knows that there is more)
// or has passed over too many. It returns the last record it looked at, or nil when it came to the end.
func (o order) scan(q *checkpoint.Query, after *checkpoint.Record, limit int) (found []*checkpoint.Record, reached *checkpoint.Record) {
	byDue := !q.DueBefore.IsZero()
	from := after
	if from == nil {
		from = &checkpoint.Record{Scope: q.Scope}
	}
	passed := 0
	o.tree.AscendGreaterOrEqual(from, func(r *checkpoint.Record) bool {
		if byDue && r.Due.After(q.DueBefore) || !byDue && !inScope(q, r) {
			return false
		}
		if after != nil && !o.less(after, r) {
			return true
		}
		if inScope(q, r) && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, r.Status)) {
			found = append(found, r)
		} else {
			passed++
		}
		if len(found) > limit || passed >= maxPassed {
			reached = r
			return false
		}
		return true
	})
	return found, reached
}

func inScope(q *checkpoint.Query, r *checkpoint.Record) bool {
	return q.Scope.IsZero() || q.Scope == r.Scope
}
