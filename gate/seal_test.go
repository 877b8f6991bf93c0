package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

var dataKey, newDataKey = bytes.Repeat([]byte("d"), 32), bytes.Repeat([]byte("n"), 32)

// secrets are words that people and tools wrote, in every place where they can.
var secrets = []string{"secret-argument", "secret-question", "secret-state", "secret-answer", "secret-result", "secret-words", "secret-start"}

func secretive(effects *counter) *gate.Tool {
	return raw("tool", func(ctx context.Context) (any, error) {
		form, err := interrupt.Ask(ctx, interrupt.Form("secret-question", json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)))
		if err != nil {
			return nil, interrupt.WithState(err, json.RawMessage(`"secret-state"`))
		}
		var content struct{ Text string }
		if err := json.Unmarshal(form.Content, &content); err != nil {
			return nil, err
		}
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("tool", "secret-question")); err != nil {
			return nil, err
		}
		if content.Text == "fail" {
			return nil, &interrupt.Failure{Text: "secret-words"}
		}
		effects.add()
		return "secret-result", nil
	}, &gate.ToolOptions{KeepResult: true})
}

// everythingStored returns all bytes that a store keeps of records, rows, audit and the ledger.
func everythingStored(t *testing.T, store checkpoint.Store) (all []byte, records []checkpoint.Record) {
	t.Helper()
	page, err := store.List(t.Context(), checkpoint.Query{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range page.Records {
		all = append(all, record.Data...)
		rows, err := store.Rows(t.Context(), record.ID, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			all = append(append(all, row.Name...), row.Data...)
		}
	}
	entries, err := store.Audit(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Data...)
	}
	ledger, member, err := store.Join(t.Context(), checkpoint.Ledger{})
	if err != nil {
		t.Fatal(err)
	}
	if err := member.Leave(); err != nil {
		t.Fatal(err)
	}
	return append(all, ledger.Meta...), page.Records
}

// live runs interactions through every state and leaves them in store.
func live(t *testing.T, g *gate.Gate) {
	t.Helper()
	c := call("tool", `{"a":"secret-argument"}`)
	mustAsk(t, g, c)
	mustAnswer(t, g, mustAsk(t, g, c), `{"content":{"text":"secret-answer"}}`)
	for _, end := range []string{"secret-answer", "fail"} {
		c.StartID = "secret-start" + end
		p := mustAsk(t, g, c)
		p = mustAsk(t, g, with(c, p, fmt.Sprintf(`{"content":{"text":%q}}`, end)))
		if _, err := g.Invoke(t.Context(), with(c, p, allow)); (err != nil) != (end == "fail") {
			t.Fatal(err)
		}
	}
}

// R37: with data keys nothing that a person or a tool wrote is in plain text at rest, nor the key
// of the index hashes; without, it is (else this test proves nothing).
func TestNothingInPlainText(t *testing.T) {
	for name, keys := range map[string][][]byte{"encrypted": {dataKey}, "plain": nil} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
				var effects counter
				store := process()
				g := open(t, store, gate.Options{Tools: []*gate.Tool{secretive(&effects)}, DataKeys: keys})
				live(t, g)
				all, records := everythingStored(t, store)
				if len(records) != 4 {
					t.Fatalf("%d records", len(records))
				}
				for _, secret := range secrets {
					if got, want := bytes.Contains(all, []byte(secret)), keys == nil && secret != "secret-start"; got != want {
						t.Errorf("%s is there: %v, want %v", secret, got, want)
					}
				}
				if got := bytes.Contains(all, []byte(`"indexKey"`)); got != (keys == nil) {
					t.Errorf("the index key is in plain text: %v", got)
				}
				effects.want(t, 1)
			})
		})
	}
}

// R37: with encryption on, plain text is refused and not read, and without, what is sealed; a
// ledger is one or the other.
func TestEncryptedWholeOrNotAtAll(t *testing.T) {
	var effects counter
	for name, tc := range map[string]struct{ first, second [][]byte }{
		"keys given to a plain ledger":        {nil, [][]byte{dataKey}},
		"no keys for an encrypted ledger":     {[][]byte{dataKey}, nil},
		"another key for an encrypted ledger": {[][]byte{dataKey}, [][]byte{newDataKey}},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			open(t, store, gate.Options{Tools: []*gate.Tool{secretive(&effects)}, DataKeys: tc.first})
			if _, err := gate.Open(t.Context(), store, &gate.Options{Keys: [][]byte{testKey}, DataKeys: tc.second}); err == nil {
				t.Error("opened")
			}
		})
	}
	for name, keys := range map[string][][]byte{"short": {[]byte("short")}, "twice": {dataKey, dataKey}} {
		if _, err := gate.Open(t.Context(), memstore.New(), &gate.Options{Keys: [][]byte{testKey}, DataKeys: keys}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}

	// A single record in plain text among sealed ones.
	store := memstore.New()
	g := open(t, store, gate.Options{Tools: []*gate.Tool{secretive(&effects)}, DataKeys: [][]byte{dataKey}})
	other := memstore.New()
	p := mustAsk(t, open(t, other, gate.Options{Tools: []*gate.Tool{secretive(&effects)}}), call("tool", `{}`))
	record, err := other.Load(t.Context(), p.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	q := mustAsk(t, g, call("tool", `{}`))
	sealed, err := store.Load(t.Context(), q.Interaction)
	if err != nil {
		t.Fatal(err)
	}
	sealed.Data, sealed.Revision = record.Data, 2
	if err := store.Commit(t.Context(), &checkpoint.Batch{Puts: []checkpoint.Put{{Record: sealed}}}); err != nil {
		t.Fatal(err)
	}
	mustFail(t, g, with(call("tool", `{}`), q), gate.ErrUnavailable)
}

// R37, R21: sealed data opens in its own place only: not under another id, revision or ledger, and
// not when a bit of it or of the plain fields beside it is changed.
func TestSealedDataStaysInItsPlace(t *testing.T) {
	var effects counter
	options := gate.Options{Tools: []*gate.Tool{secretive(&effects)}, DataKeys: [][]byte{dataKey}}
	for name, change := range map[string]func(t *testing.T, mine, others *checkpoint.Record){
		"unchanged":             func(*testing.T, *checkpoint.Record, *checkpoint.Record) {},
		"of another record":     func(_ *testing.T, mine, others *checkpoint.Record) { mine.Data = others.Data },
		"a bit of the text":     func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Data[40] ^= 1 },
		"a bit of the nonce":    func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Data[10] ^= 1 },
		"a bit of the key's id": func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Data[1] ^= 1 },
		"cut":                   func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Data = mine.Data[:len(mine.Data)-1] },
		"a stump":               func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Data = mine.Data[:5] },
		"empty":                 func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Data = nil },
		"plain due":             func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Due = mine.Due.Add(time.Hour) },
		"plain status":          func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Status = checkpoint.Answered },
		"plain claim":           func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Claim.Attempt++ },
		"revision":              func(_ *testing.T, mine, _ *checkpoint.Record) { mine.Revision++ },
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			g := open(t, store, options)
			c := call("tool", `{}`)
			p := mustAsk(t, g, c)
			others, err := store.Load(t.Context(), mustAsk(t, g, c).Interaction)
			if err != nil {
				t.Fatal(err)
			}
			mine, err := store.Load(t.Context(), p.Interaction)
			if err != nil {
				t.Fatal(err)
			}
			mine.Data = slices.Clone(mine.Data)
			change(t, &mine, &others)
			rig := &rigged{Store: store, instead: &mine}
			h := open(t, rig, options)
			s, err := h.InspectID(t.Context(), "ann", p.Interaction)
			if err != nil || (s.Problem == nil) != (name == "unchanged") {
				t.Errorf("inspect: %+v, %v", s, err)
			}
		})
	}
}

// A rigged store returns another record instead of the one of its id.
type rigged struct {
	checkpoint.Store
	instead *checkpoint.Record
}

func (r *rigged) Load(ctx context.Context, id checkpoint.ID) (checkpoint.Record, error) {
	if id == r.instead.ID {
		return *r.instead, nil
	}
	return r.Store.Load(ctx, id)
}

// R37, R22: a new first key seals, the former ones still open; the keys of tokens and of data are
// apart. A key that left takes what it sealed with it: unavailable, listed with its problem, and
// still expiring (X6).
func TestDataKeyRing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		clock := newClock()
		store := process()
		options := func(keys ...[]byte) gate.Options {
			return gate.Options{Tools: []*gate.Tool{secretive(&effects)}, DataKeys: keys, Now: clock.Now}
		}
		c := call("tool", `{}`)
		p := mustAsk(t, open(t, store, options(dataKey)), c)
		both := open(t, store, options(newDataKey, dataKey))
		mustAsk(t, both, with(c, p))
		second := mustAsk(t, both, with(c, p, `{"content":{"text":"x"}}`)) // written under the new key
		report, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{newDataKey, dataKey}})
		if err != nil || report.Sealed != 0 || report.Current != 1 || report.Left+report.Unread != 0 {
			t.Fatalf("report %+v, %v", report, err)
		}
		only := open(t, store, options(newDataKey))
		mustFinish(t, only, with(c, second, allow), `"secret-result"`)

		lost := mustAsk(t, both, c)
		if _, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{dataKey, newDataKey}}); err != nil {
			t.Fatal(err)
		}
		mustFail(t, only, with(c, lost), gate.ErrUnavailable)
		page, err := only.List(t.Context(), gate.ListQuery{Scope: "ann"})
		if err != nil || len(page.Interactions) != 1 || page.Interactions[0].Problem == nil {
			t.Errorf("list: %+v, %v", page, err)
		}
		clock.add(25 * time.Hour)
		if err := only.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Load(t.Context(), lost.Interaction); err == nil {
			t.Error("what cannot be read does not expire")
		}
	})
}

// R37: a ledger that was in plain text is encrypted, beside a gate that works on it as before;
// start IDs, tokens and lists survive. A handler that runs is left, and told.
func TestReencryptFromPlain(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		store := process()
		entered, leave := make(chan struct{}), make(chan struct{})
		slow := raw("slow", func(context.Context) (any, error) {
			close(entered)
			<-leave
			return "done", nil
		}, nil)
		plain := open(t, store, gate.Options{Tools: []*gate.Tool{secretive(&effects), slow}})
		live(t, plain)
		c := call("tool", `{"a":"secret-argument"}`)
		c.StartID = "work"
		p := mustAsk(t, plain, c)
		running := call("slow", `{}`)
		running.StartID = "slow"
		done := make(chan error, 1)
		go func() {
			_, err := plain.Invoke(context.WithoutCancel(t.Context()), running)
			done <- err
		}()
		<-entered
		reencrypt := func() gate.ReencryptReport {
			t.Helper()
			report, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{dataKey}, FromPlain: true})
			if err != nil {
				t.Fatal(err)
			}
			return report
		}
		if report := reencrypt(); report.Sealed != 5 || report.Left != 1 || report.Unread != 0 {
			t.Errorf("first %+v", report)
		}
		close(leave)
		if err := <-done; err != nil { // its owner wrote as if nothing had happened
			t.Error(err)
		}
		if report := reencrypt(); report.Sealed != 1 || report.Current != 5 || report.Left != 0 {
			t.Errorf("second %+v", report)
		}
		all, _ := everythingStored(t, store)
		for _, secret := range append(secrets, `"indexKey"`) {
			if bytes.Contains(all, []byte(secret)) {
				t.Errorf("%s is there", secret)
			}
		}
		g := open(t, store, gate.Options{Tools: []*gate.Tool{secretive(&effects), slow}, DataKeys: [][]byte{dataKey}})
		if q := mustAsk(t, g, c); q.Token != p.Token {
			t.Error("another token")
		}
		mustFail(t, plain, c, gate.ErrUnavailable) // what has no key reads nothing
		for _, bad := range []*gate.ReencryptOptions{nil, {}, {DataKeys: [][]byte{[]byte("short")}}} {
			if _, err := gate.Reencrypt(t.Context(), store, bad); err == nil {
				t.Errorf("%+v is taken", bad)
			}
		}
		if _, err := gate.Reencrypt(t.Context(), memstore.New(), &gate.ReencryptOptions{DataKeys: [][]byte{dataKey}}); err != nil {
			t.Error(err) // an empty store is begun encrypted
		}
		if report := reencrypt(); report.Unread != 0 || report.Sealed != 0 {
			t.Errorf("third %+v", report)
		}
		if _, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{newDataKey}}); err == nil {
			t.Error("taken under a key without the former one")
		}
	})
}

// R37: sweeping needs no decryption: what ended long ago goes without its key.
func TestSweepNeedsNoDataKey(t *testing.T) {
	onEveryStore(t, func(t *testing.T, process func() checkpoint.Store) {
		var effects counter
		clock := newClock()
		store := process()
		g := open(t, store, gate.Options{Tools: []*gate.Tool{secretive(&effects)}, DataKeys: [][]byte{dataKey}, Now: clock.Now})
		live(t, g)
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := gate.Reencrypt(t.Context(), store, &gate.ReencryptOptions{DataKeys: [][]byte{newDataKey, dataKey}}); err != nil {
			t.Fatal(err)
		}
		page, err := store.List(t.Context(), checkpoint.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Records { // as if its key had been lost
			record := &page.Records[i]
			record.Data[1]++
			record.Revision++
			batch := &checkpoint.Batch{Puts: []checkpoint.Put{{Record: *record, Epoch: record.Claim.Epoch}}}
			if err := store.Commit(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
		clock.add(100 * time.Hour)
		g = open(t, store, gate.Options{DataKeys: [][]byte{newDataKey}, Now: clock.Now})
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if page, err = store.List(t.Context(), checkpoint.Query{}); err != nil {
			t.Fatal(err)
		}
		for _, record := range page.Records {
			if record.Status != checkpoint.Tombstone {
				t.Errorf("left: %v", record.Status)
			}
		}
		if len(page.Records) != 2 { // the two with a start ID
			t.Errorf("%d records are left", len(page.Records))
		}
	})
}

// R37, R14: rows that cannot be read are counted, and keep nothing else from being sealed anew.
func TestReencryptDamagedRows(t *testing.T) {
	var effects counter
	store := &faulty{Store: newMem()}
	g := open(t, store, gate.Options{Tools: []*gate.Tool{deploy(&effects, nil)}, DataKeys: [][]byte{dataKey}})
	for range 3 {
		mustAsk(t, g, call("deploy", `{"service":"api"}`))
	}
	store.rowsFault = errInjected
	ring := &gate.ReencryptOptions{DataKeys: [][]byte{newDataKey, dataKey}}
	if report, err := gate.Reencrypt(t.Context(), store, ring); err != nil || report.Sealed != 3 || report.Unread != 3 {
		t.Errorf("report %+v, %v", report, err)
	}
	store.rowsFault = checkpoint.ErrUnavailable
	if _, err := gate.Reencrypt(t.Context(), store, ring); !errors.Is(err, checkpoint.ErrUnavailable) {
		t.Errorf("a store that serves nothing: %v", err)
	}
}

// R22: the secrets of tokens and of data are others.
func TestOneSecretForBoth(t *testing.T) {
	if _, err := gate.Open(t.Context(), newMem(), &gate.Options{Keys: [][]byte{dataKey}, DataKeys: [][]byte{newDataKey, dataKey}}); err == nil {
		t.Error("opened")
	}
}
