package boltstore

import "github.com/parley-go/parley/checkpoint"

// stored is what a write is compared with: the file, and over it what of the overlay the file does
// not have yet.
type stored struct {
	tables *tables
	over   *overlay // nil: nothing
}

// head returns the record without its data, or nil.
func (s stored) head(id checkpoint.ID) (*head, error) {
	if s.over != nil {
		if c := s.over.records[id]; c != nil {
			return c.head(), nil
		}
	}
	return s.tables.head(id)
}

// eachRow goes through the rows of a record that is there, and says how much data each of them has.
// It is for removing them all: a damaged one counts as empty, so that it goes as well.
func (s stored) eachRow(id checkpoint.ID, visit func(data int)) error {
	var lazy map[string]*rowChange
	if s.over != nil {
		lazy = s.over.rows[id]
	}
	for _, c := range lazy {
		if c.value != nil {
			visit(c.data)
		}
	}
	return s.tables.rowsUnder(id, "", func(key, value []byte) (bool, error) {
		if _, name := splitRowKey(key); lazy[string(name)] != nil {
			return true, nil
		}
		data := 0
		if u, err := decodeUnder(key, value); err == nil {
			data = int(u.dataSize)
		}
		visit(data)
		return true, nil
	})
}

// row says how much data a row has, where there is one.
func (s stored) row(id checkpoint.ID, name string) (data int, there bool, err error) {
	if s.over != nil {
		if c := s.over.rows[id][name]; c != nil {
			return c.data, c.value != nil, nil
		}
	}
	key := rowKey(id, name)
	value := s.tables.rows().Get(key)
	if value == nil {
		return 0, false, nil
	}
	u, err := decodeUnder(key, value)
	if err != nil {
		return 0, false, err
	}
	return int(u.dataSize), true, nil
}

// A judgement is what a write was compared with, and what it changes.
type judgement struct {
	old  map[checkpoint.ID]*head // of the records that it changes; nil for those that it creates
	used tally                   // by how much it changes what is used
}

// judge compares every expectation of the write about records and rows with what is stored. Its
// error is a *checkpoint.ConflictError, or says what cannot be read.
func (w *write) judge(s stored) (*judgement, error) {
	j := &judgement{old: make(map[checkpoint.ID]*head, len(w.changes)), used: make(tally, 2)}
	for _, c := range w.changes {
		old, err := s.head(c.record.ID)
		if err != nil {
			return nil, err
		}
		if !c.expects(old) {
			return nil, &checkpoint.ConflictError{ID: c.record.ID}
		}
		j.old[c.record.ID] = old
		j.used.record(old, -1)
		j.used.record(c.head(), 1)
		if c.row == nil {
			err := s.eachRow(c.record.ID, func(data int) { j.used.row(old.record.Scope, data, -1) })
			if err != nil {
				return nil, err
			}
		}
	}
	for _, c := range w.rows {
		record, err := w.leaves(s, c.id)
		if err != nil {
			return nil, err
		}
		if record == nil || record.record.Claim.Epoch != c.epoch {
			return nil, &checkpoint.ConflictError{ID: c.id}
		}
		data, there, err := s.row(c.id, c.name)
		if err != nil {
			return nil, err
		}
		if there {
			j.used.row(record.record.Scope, data, -1)
		}
		if c.value != nil {
			j.used.row(record.record.Scope, c.data, 1)
		}
	}
	return j, nil
}

// leaves returns the record as it is after the puts of the write, or nil.
func (w *write) leaves(s stored, id checkpoint.ID) (*head, error) {
	for _, c := range w.changes {
		if c.record.ID == id {
			return c.head(), nil
		}
	}
	return s.head(id)
}

// judgeStarts compares the start hashes that the write takes with whose they are. Its error is as
// judge's.
func (w *write) judgeStarts(t *tables, j *judgement) error {
	var taken map[checkpoint.Hash]bool
	for _, c := range w.changes {
		start := c.record.Start
		if start.IsZero() {
			continue
		}
		// Who is written in this batch gives up the hash it has, or keeps it and is found by taken.
		id, held, err := t.holder(start)
		if err != nil {
			return err
		}
		_, touched := j.old[id]
		if taken[start] || held && !touched {
			return &checkpoint.ConflictError{ID: c.record.ID}
		}
		if taken == nil {
			taken = make(map[checkpoint.Hash]bool)
		}
		taken[start] = true
	}
	return nil
}
