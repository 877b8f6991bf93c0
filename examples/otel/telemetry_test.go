package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
)

// R38: the numbers are those of what happened.
func Example() {
	main()
	// Output:
	// "deployed" <nil>
	//  failed: the tool failed
	//  rejected: the person rejected it
	//  expired: the time to answer is over: look the work up under the application's own key
	// parley.attempt.duration{code=failed,event=failed,tool=deploy} 1 in 5s
	// parley.attempt.duration{code=rejected,event=finished,tool=deploy} 1 in 0s
	// parley.attempt.duration{event=finished,tool=deploy} 1 in 5s
	// parley.events{code=failed,event=failed,tool=deploy} 1
	// parley.events{code=rejected,event=finished,tool=deploy} 1
	// parley.events{event=answered,tool=deploy} 3
	// parley.events{event=asked,tool=deploy} 5
	// parley.events{event=expired,tool=deploy} 1
	// parley.events{event=finished,tool=deploy} 1
	// parley.question.wait{tool=deploy} 3 in 360s
	// parley.questions.open{tool=deploy} 1
}

// A rig is a host with what it measured.
type rig struct {
	*host
	t      *testing.T
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer *trace.TracerProvider
	close  func()
}

func newRig(t *testing.T, store checkpoint.Store) *rig {
	t.Helper()
	r := &rig{t: t, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	r.tracer = trace.NewTracerProvider(trace.WithSpanProcessor(r.spans))
	tm, err := newTelemetry(metric.NewMeterProvider(metric.WithReader(r.reader)).Meter("test"), r.tracer.Tracer("test"))
	if err != nil {
		t.Fatal(err)
	}
	if r.host, err = open(t.Context(), store, tm); err != nil {
		t.Fatal(err)
	}
	watch, err := tm.watch(r.Gate, "deploy")
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	r.close = func() {
		if closed {
			return
		}
		closed = true
		if err := watch.Unregister(); err != nil {
			t.Error(err)
		}
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.close)
	return r
}

func (r *rig) mustAsk(ctx context.Context) gate.Call {
	r.t.Helper()
	call, err := r.ask(ctx, "allow_once")
	if err != nil {
		r.t.Fatal(err)
	}
	return call
}

func (r *rig) collect() []string {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
	return lines(all)
}

func (r *rig) wants(line string) {
	r.t.Helper()
	if have := r.collect(); !slices.Contains(have, line) {
		r.t.Errorf("want %s, have %q", line, have)
	}
}

// The open questions are those of the ledger: a new process knows of them at once, counts what
// becomes of them, and tells of none when there is none.
func TestOpenQuestionsOverARestart(t *testing.T) {
	store := memstore.New()
	before := newRig(t, store)
	before.wants("parley.questions.open{tool=deploy} 0")
	call := before.mustAsk(t.Context())
	before.mustAsk(t.Context())
	before.wants("parley.questions.open{tool=deploy} 2")
	before.close()

	after := newRig(t, store)
	after.wants("parley.questions.open{tool=deploy} 2")
	err := after.Answer(t.Context(), gate.AnswerRequest{Interaction: onlyOf(t, after, call), Round: 1, Scope: "ann", Answers: call.Answers})
	if err != nil {
		t.Fatal(err)
	}
	after.wants("parley.questions.open{tool=deploy} 1")
	// One expires that nobody answered, and one that was answered and not carried out.
	after.now = after.now.Add(10 * time.Minute)
	after.wants("parley.questions.open{tool=deploy} 0")
	after.wants("parley.events{event=expired,tool=deploy} 2")
	after.wants("parley.question.wait{tool=deploy} 1 in 0s")
}

// onlyOf is the interaction whose question the call answers.
func onlyOf(t *testing.T, r *rig, call gate.Call) checkpoint.ID {
	t.Helper()
	page, err := r.List(t.Context(), gate.ListQuery{Scope: call.Scope})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range page.Interactions {
		if _, ok := call.Answers[s.Prompt.Questions[0].ID]; ok {
			return s.ID
		}
	}
	t.Fatal("the question is not open")
	return checkpoint.ID{}
}

// More people, conversations and interactions do not make more series.
func TestSeriesAreFew(t *testing.T) {
	r := newRig(t, memstore.New())
	var series int
	for i := range 20 {
		call := r.mustAsk(t.Context())
		if _, err := r.Invoke(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		call.Scope, call.Session, call.StartID = fmt.Sprint("scope ", i), fmt.Sprint("session ", i), "work"
		call.Token, call.Answers = "", nil
		if _, err := r.Invoke(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		have := r.collect()
		if i == 0 {
			series = len(have)
		} else if len(have) != series {
			t.Fatalf("%d series after %d runs, %d after the first: %q", len(have), i+1, series, have)
		}
	}
}

// A question and an attempt have spans of their own, with the gate's times, linked to the request
// that ended them; the requests' own spans have the events.
func TestSpans(t *testing.T) {
	r := newRig(t, memstore.New())
	tracer := r.tracer.Tracer("test")
	ctx, asking := tracer.Start(t.Context(), "ask")
	asked := r.now
	call := r.mustAsk(ctx)
	asking.End()
	r.now = r.now.Add(time.Minute)
	answered := r.now
	ctx, answering := tracer.Start(t.Context(), "answer")
	if _, err := r.Invoke(ctx, call); err != nil {
		t.Fatal(err)
	}
	answering.End()

	byName := map[string]trace.ReadOnlySpan{}
	for _, span := range r.spans.Ended() {
		byName[span.Name()] = span
	}
	for name, times := range map[string][2]time.Time{
		"parley.question": {asked, answered},
		"parley.attempt":  {answered, answered.Add(5 * time.Second)},
	} {
		span := byName[name]
		if span == nil {
			t.Fatalf("no span %s", name)
		}
		if !span.StartTime().Equal(times[0]) || !span.EndTime().Equal(times[1]) {
			t.Errorf("%s is from %v to %v, want %v", name, span.StartTime(), span.EndTime(), times)
		}
		if span.Parent().IsValid() || len(span.Links()) != 1 || span.Links()[0].SpanContext.SpanID() != answering.SpanContext().SpanID() {
			t.Errorf("%s: parent %v, links %v", name, span.Parent(), span.Links())
		}
	}
	for name, want := range map[string][]string{
		"ask": {"parley.asked"}, "answer": {"parley.answered", "parley.finished"},
	} {
		var have []string
		for _, event := range byName[name].Events() {
			have = append(have, event.Name)
		}
		if !slices.Equal(have, want) {
			t.Errorf("span %s has events %q, want %q", name, have, want)
		}
	}
}
