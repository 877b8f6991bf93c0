package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-go/parley/checkpoint"
)

// What is written by hand is what encoding/json makes of the structs and their tags.
func compareWithTags(t interface {
	Helper()
	Errorf(format string, args ...any)
}, in *checkpoint.Interaction, e *checkpoint.Entry) {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	wantErr := enc.Encode(struct {
		V int `json:"v"`
		*checkpoint.Interaction
	}{1, in})
	have, err := checkpoint.Encode(in)
	if (err != nil) != (wantErr != nil) {
		t.Errorf("record: error %v, want %v", err, wantErr)
	}
	if diff := cmp.Diff(buf.String(), string(have.Data)+"\n"); err == nil && diff != "" {
		t.Errorf("record (-by its tags +written):\n%s", diff)
	}
	want, wantErr := json.Marshal(struct {
		V int `json:"v"`
		*checkpoint.Entry
	}{1, e})
	entry, err := checkpoint.EncodeEntry(e)
	if (err != nil) != (wantErr != nil) {
		t.Errorf("audit entry: error %v, want %v", err, wantErr)
	}
	if diff := cmp.Diff(string(want), string(entry)); err == nil && diff != "" {
		t.Errorf("audit entry (-by its tags +written):\n%s", diff)
	}
}

// fill sets everything in v, and everything that it leads to, to what the functions make.
func fill(v reflect.Value, f filler) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(f.time()))
		return
	case json.RawMessage:
		v.SetBytes(f.raw())
		return
	case checkpoint.Status:
		v.SetUint(uint64(f.status()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), f)
		}
	case reflect.Pointer:
		if v.SetZero(); f.length() > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), f)
		}
	case reflect.Slice:
		n := f.length()
		if v.SetZero(); n < 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), f)
		}
	case reflect.Array:
		b := byte(f.number())
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(b))
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.number() != 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.number()))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.number())
	default:
		panic("fill does not know " + v.Type().String())
	}
}

type filler struct {
	time   func() time.Time
	raw    func() json.RawMessage
	status func() checkpoint.Status
	length func() int // of slices; -1: nil, and so is a pointer where it is not positive
	number func() uint64
	text   func() string
}

// A field that the encoder forgets is found here: everything is set at once, and then each field
// alone is zero, and each alone is set.
func TestEncodeForgetsNoField(t *testing.T) {
	full := filler{
		time:   func() time.Time { return time.UnixMilli(1764500000123).UTC() },
		raw:    func() json.RawMessage { return json.RawMessage(`{ "<a>" : [1, null] }`) },
		status: func() checkpoint.Status { return checkpoint.Running },
		length: func() int { return 2 },
		number: func() uint64 { return 7 },
		text:   func() string { return "<a> & \"b\"\u2028\xff\x00\b\f\n\r\t\\é" },
	}
	var in checkpoint.Interaction
	var e checkpoint.Entry
	fill(reflect.ValueOf(&in).Elem(), full)
	fill(reflect.ValueOf(&e).Elem(), full)
	compareWithTags(t, &in, &e)
	compareWithTags(t, &checkpoint.Interaction{Status: checkpoint.Open}, &checkpoint.Entry{Status: checkpoint.Open})
	fields := 0
	zeroEach(reflect.ValueOf(&in).Elem(), func() { fields++; compareWithTags(t, &in, &e) })
	zeroEach(reflect.ValueOf(&e).Elem(), func() { fields++; compareWithTags(t, &in, &e) })
	if fields < 60 {
		t.Errorf("only %d fields were looked at", fields)
	}
	var little checkpoint.Interaction
	var short checkpoint.Entry
	setEach(reflect.ValueOf(&little).Elem(), reflect.ValueOf(&in).Elem(), func() { compareWithTags(t, &little, &e) })
	setEach(reflect.ValueOf(&short).Elem(), reflect.ValueOf(&e).Elem(), func() { compareWithTags(t, &in, &short) })
}

// The same for runs, as they are when they go on and when they have ended.
func TestEncodeForgetsNoFieldOfARun(t *testing.T) {
	full := filler{
		time:   func() time.Time { return time.UnixMilli(1764500000123).UTC() },
		raw:    func() json.RawMessage { return json.RawMessage(`{ "<a>" : [1, null] }`) },
		status: func() checkpoint.Status { return checkpoint.RunLive },
		length: func() int { return 2 },
		number: func() uint64 { return 7 },
		text:   func() string { return "<a> & \"b\"" },
	}
	var goes, ended checkpoint.Run
	fill(reflect.ValueOf(&goes).Elem(), full)
	ended = goes
	goes.Ending = nil
	ended.Status, ended.Claim.Owner, ended.Start, ended.Blob = checkpoint.RunEnded, "", checkpoint.Hash{}, nil
	fields := 0
	for _, run := range []*checkpoint.Run{&goes, &ended} {
		compare := func() {
			record, err := checkpoint.EncodeRun(run)
			if err != nil {
				return // what does not go together
			}
			fields++
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			err = enc.Encode(struct {
				V int `json:"v"`
				*checkpoint.Run
			}{1, run})
			if diff := cmp.Diff(buf.String(), string(record.Data)+"\n"); err != nil || diff != "" {
				t.Errorf("run: %v (-by its tags +written):\n%s", err, diff)
			}
		}
		compare()
		zeroEach(reflect.ValueOf(run).Elem(), compare)
	}
	if fields < 25 {
		t.Errorf("only %d forms were looked at", fields)
	}
}

// zeroEach calls look while one field after the other is zero, those of what v leads to as well.
func zeroEach(v reflect.Value, look func()) {
	switch {
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			zeroEach(v.Elem(), look)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			zeroEach(v.Index(i), look)
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			was := reflect.ValueOf(v.Field(i).Interface())
			v.Field(i).SetZero()
			look()
			v.Field(i).Set(was)
			zeroEach(v.Field(i), look)
		}
	}
}

// setEach calls look while one field after the other is what it is in full.
func setEach(v, full reflect.Value, look func()) {
	status := v.FieldByName("Status")
	for i := range v.NumField() {
		v.SetZero()
		status.Set(full.FieldByName("Status")) // without one nothing is written
		v.Field(i).Set(full.Field(i))
		look()
	}
}

func TestEncodeAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(
			rapid.String(), rapid.SampledFrom([]string{"", "<>&", "\u2028\u2029", "\ufffd", "\xff", "\xe2\x80", "\"\\/\x00\x1f\x7f"}),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		)
		// What cannot be written is refused; most of what is drawn is sound, so that not all of it is.
		sound := rapid.IntRange(0, 3).Draw(t, "sound") > 0
		raws := []string{"null", "{}", "[ ]", ` {"a" : "<b> & \u2028" , "c":[1.50, -0e+1]}`, "\"\u2028\"", "\"\xff\"", ` "\u003c" `}
		zones := []*time.Location{time.UTC, time.FixedZone("", 3600)}
		statuses := []checkpoint.Status{checkpoint.Started, checkpoint.Running, checkpoint.Finished, checkpoint.Tombstone}
		if !sound {
			raws = append(raws, "", "{", "1 2")
			zones = append(zones, time.FixedZone("", 25*3600))
			statuses = append(statuses, 0, 5, 99)
		}
		random := filler{
			time: func() time.Time {
				if rapid.IntRange(0, 9).Draw(t, "zero") == 0 {
					return time.Time{}
				}
				at := time.Unix(rapid.Int64Range(-1e10, 2e11).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns"))
				return at.In(rapid.SampledFrom(zones).Draw(t, "zone"))
			},
			raw: func() json.RawMessage {
				if rapid.Bool().Draw(t, "nil") {
					return nil
				}
				return json.RawMessage(rapid.SampledFrom(raws).Draw(t, "raw"))
			},
			status: func() checkpoint.Status { return rapid.SampledFrom(statuses).Draw(t, "status") },
			length: func() int { return rapid.IntRange(-1, 2).Draw(t, "length") },
			number: func() uint64 { return rapid.Uint64().Draw(t, "number") },
			text:   func() string { return texts.Draw(t, "text") },
		}
		var in checkpoint.Interaction
		var e checkpoint.Entry
		fill(reflect.ValueOf(&in).Elem(), random)
		fill(reflect.ValueOf(&e).Elem(), random)
		compareWithTags(t, &in, &e)
		if sound {
			compareReading(t, &in, &e)
		}
	})
}

// What is read is what encoding/json reads.
func compareReading(t *rapid.T, in *checkpoint.Interaction, e *checkpoint.Entry) {
	in.Status, in.Ending, in.Remains = checkpoint.Failed, &checkpoint.Ending{}, nil
	in.Arguments = json.RawMessage("{ \"<a>\" : \"\xff\" , \"a\":1, \"a\":2 }")
	in.Due = in.Due.UTC().Truncate(time.Millisecond)
	for i := range in.Rounds { // what goes together
		r := &in.Rounds[i]
		r.Questions = append(r.Questions, checkpoint.Question{})
		if r.Answer == nil {
			r.Answer = &checkpoint.Answer{}
		}
		r.Answer.Payloads = make([]json.RawMessage, len(r.Questions))
		if len(r.Answer.Remembered) > 0 {
			r.Answer.Remembered = make([]checkpoint.ID, len(r.Questions))
		}
	}
	record, err := checkpoint.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	var want checkpoint.Interaction
	if err := json.Unmarshal(record.Data, &want); err != nil {
		t.Fatal(err)
	}
	record.Due, record.Claim = want.Due, want.Claim // an owner that is no UTF-8 is written as what is
	have, err := checkpoint.Decode(record)
	if err != nil {
		t.Fatalf("%v\n%s", err, record.Data)
	}
	if diff := cmp.Diff(&want, have); diff != "" {
		t.Errorf("record (-by encoding/json +read):\n%s", diff)
	}
	data, err := checkpoint.EncodeEntry(e)
	if err != nil {
		t.Fatal(err)
	}
	var wantEntry checkpoint.Entry
	if err := json.Unmarshal(data, &wantEntry); err != nil {
		t.Fatal(err)
	}
	haveEntry, err := checkpoint.DecodeEntry(data)
	if diff := cmp.Diff(&wantEntry, haveEntry); err != nil || diff != "" {
		t.Errorf("audit entry: %v (-by encoding/json +read):\n%s", err, diff)
	}
}
