package gatetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/parley-go/parley/checkpoint"
)

// changed says in what two prompts of one round differ that should be the same, or nothing.
func changed(was, is []checkpoint.Question) string {
	if len(was) != len(is) {
		return fmt.Sprintf("the number of its questions is %d in one run and %d in another", len(was), len(is))
	}
	if reordered(was, is) {
		i := 0
		for same(was[i], is[i]) {
			i++
		}
		return fmt.Sprintf("its questions change their order: question %d is %s in one run and %s in another",
			i+1, show(was[i]), show(is[i]))
	}
	for i := range was {
		if what := changedQuestion(was[i], is[i]); what != "" {
			return fmt.Sprintf("question %d (%s) is not the same in every run: %s", i+1, was[i].Type, what)
		}
	}
	return ""
}

func changedQuestion(was, is checkpoint.Question) string {
	switch {
	case was.Type != is.Type:
		return fmt.Sprintf("its type is %s in one and %s in another", was.Type, is.Type)
	case was.Key != is.Key:
		return fmt.Sprintf("its key is %q in one and %q in another", was.Key, is.Key)
	case same(was, is):
		return ""
	}
	if what := difference("", was.Body, is.Body); what != "" {
		return what
	}
	return "an option that is not shown changes"
}

// same is how the gate finds a question again (R2): by its key, else by what it shows.
func same(a, b checkpoint.Question) bool {
	return a.Type == b.Type && a.Key == b.Key && (a.Key != "" || a.Digest == b.Digest)
}

// reordered reports whether the prompts hold the same questions in another order.
func reordered(was, is []checkpoint.Question) bool {
	if slices.EqualFunc(was, is, same) {
		return false
	}
	left := slices.Clone(is)
	for _, q := range was {
		i := slices.IndexFunc(left, func(o checkpoint.Question) bool { return same(q, o) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// show is a question in a report.
func show(q checkpoint.Question) string {
	if q.Key != "" {
		return fmt.Sprintf("%s with key %q", q.Type, q.Key)
	}
	return fmt.Sprintf("%s %s", q.Type, clip(q.Body))
}

// difference names the first place in which two JSON values differ, and what is there; it is empty
// where they are the same.
func difference(at string, was, is json.RawMessage) string {
	var a, b map[string]json.RawMessage
	var c, d []json.RawMessage
	switch {
	case object(was, &a) && object(is, &b):
		both := map[string]bool{}
		for name := range a {
			both[name] = true
		}
		for name := range b {
			both[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(both)) {
			if what := difference(at+"/"+name, a[name], b[name]); what != "" {
				return what
			}
		}
		return ""
	case array(was, &c) && array(is, &d):
		for i := range max(len(c), len(d)) {
			if what := difference(at+"/"+strconv.Itoa(i), element(c, i), element(d, i)); what != "" {
				return what
			}
		}
		return ""
	case equal(was, is):
		return ""
	}
	if at != "" {
		at += " "
	}
	return fmt.Sprintf("%sis %s in one and %s in another", at, clip(was), clip(is))
}

func object(text json.RawMessage, into *map[string]json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Unmarshal(text, into) == nil
}

func array(text json.RawMessage, into *[]json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) && json.Unmarshal(text, into) == nil
}

func element(list []json.RawMessage, i int) json.RawMessage {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// equal compares two values that are neither both objects nor both arrays.
func equal(a, b json.RawMessage) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	var s, t string
	if bytes.HasPrefix(a, []byte(`"`)) && bytes.HasPrefix(b, []byte(`"`)) &&
		json.Unmarshal(a, &s) == nil && json.Unmarshal(b, &t) == nil {
		return s == t
	}
	return bytes.Equal(a, b)
}

// clip shortens what a report shows of a value.
func clip(text json.RawMessage) string {
	const most = 160
	switch {
	case text == nil:
		return "absent"
	case len(text) > most:
		return string(bytes.ToValidUTF8(text[:most], nil)) + "…"
	}
	return string(text)
}
