package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/gate"
)

// A telemetry is a [gate.Observer] that measures, and keeps nothing: every number comes from the
// event, or from the ledger, so that it stays right when the process starts again.
//
// Attributes are names of tools, words of parley and its codes, which are few. Interactions, scopes
// and who answered are none: each of them would be a series of its own.
type telemetry struct {
	meter  metric.Meter
	tracer trace.Tracer

	events  metric.Int64Counter
	wait    metric.Float64Histogram
	attempt metric.Float64Histogram
	open    metric.Int64ObservableGauge
}

func newTelemetry(meter metric.Meter, tracer trace.Tracer) (*telemetry, error) {
	t := &telemetry{meter: meter, tracer: tracer}
	var errs [4]error
	t.events, errs[0] = meter.Int64Counter("parley.events",
		metric.WithDescription("What happened: asked, answered, finished, failed, expired, and the others."))
	seconds := metric.WithExplicitBucketBoundaries(.1, 1, 5, 15, 60, 300, 600, 3600, 6*3600, 24*3600)
	t.wait, errs[1] = meter.Float64Histogram("parley.question.wait",
		seconds, metric.WithUnit("s"), metric.WithDescription("How long questions waited for the answers they got."))
	t.attempt, errs[2] = meter.Float64Histogram("parley.attempt.duration",
		seconds, metric.WithUnit("s"), metric.WithDescription("How long handlers ran with an answer, until they ended or asked again."))
	// A gauge: every process on one ledger reports all of it, and a sum would count it twice.
	t.open, errs[3] = meter.Int64ObservableGauge("parley.questions.open",
		metric.WithDescription("Prompts that wait for their answer now."))
	return t, errors.Join(errs[:]...)
}

// Observe measures one transition.
func (t *telemetry) Observe(ctx context.Context, e gate.Event) {
	what := []attribute.KeyValue{attribute.String("parley.tool", e.Entry.Tool), attribute.String("parley.event", word(e.Entry))}
	if e.Entry.Code != "" {
		what = append(what, attribute.String("parley.code", e.Entry.Code))
	}
	attributes := metric.WithAttributes(what...)
	t.events.Add(ctx, 1, attributes)
	if e.Scope != "" { // else it may have nothing to do with the request that it rides on
		trace.SpanFromContext(ctx).AddEvent("parley."+word(e.Entry), trace.WithTimestamp(e.Entry.Time), trace.WithAttributes(what...))
	}
	switch {
	case e.Before == checkpoint.Open && e.Entry.Action == checkpoint.ActionAnswered:
		t.wait.Record(ctx, e.Entry.Time.Sub(e.Asked).Seconds(), metric.WithAttributes(what[0]))
		t.span(ctx, "parley.question", e.Asked, e, what)
	case e.Before == checkpoint.Open && e.Entry.Action == checkpoint.ActionExpired:
		t.span(ctx, "parley.question", e.Asked, e, what)
	case e.Before == checkpoint.Running && (e.Entry.Action == checkpoint.ActionAsked || e.Entry.Action == checkpoint.ActionEnded):
		t.attempt.Record(ctx, e.Entry.Time.Sub(e.Since).Seconds(), attributes)
		t.span(ctx, "parley.attempt", e.Since, e, what)
	}
}

// word is the action, or how an attempt ended.
func word(e checkpoint.Entry) string {
	if e.Action == checkpoint.ActionEnded {
		return e.Status.String()
	}
	return string(e.Action)
}

// span tells of a time that is over: it began in another request, or in another process. That is
// why it is no child of this request's span, but is linked to it.
func (t *telemetry) span(ctx context.Context, name string, from time.Time, e gate.Event, what []attribute.KeyValue) {
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithTimestamp(from), trace.WithAttributes(what...)}
	if e.Scope != "" {
		opts = append(opts, trace.WithLinks(trace.LinkFromContext(ctx)))
	}
	_, span := t.tracer.Start(ctx, name, opts...)
	if e.Entry.Status == checkpoint.Failed {
		span.SetStatus(codes.Error, e.Entry.Code)
	}
	span.End(trace.WithTimestamp(e.Entry.Time))
}

// watch counts the open questions of the tools at every collection, by going through them. Where
// many thousands wait, [checkpoint.Store.Usage] tells their number at once, though not by tool.
// Unregister it before the gate closes.
func (t *telemetry) watch(g *gate.Gate, tools ...string) (metric.Registration, error) {
	return t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		open := map[string]int64{}
		for _, tool := range tools {
			open[tool] = 0 // a tool without open questions is told too
		}
		query := gate.ListQuery{AllScopes: true, Statuses: []checkpoint.Status{checkpoint.Open}, Limit: 1000}
		for {
			page, err := g.List(ctx, query)
			if err != nil {
				return err
			}
			for _, s := range page.Interactions {
				if s.Status == checkpoint.Open { // else it is overdue
					open[s.Tool]++
				}
			}
			if query.After = page.Next; query.After == "" {
				break
			}
		}
		for tool, n := range open {
			o.ObserveInt64(t.open, n, metric.WithAttributes(attribute.String("parley.tool", tool)))
		}
		return nil
	}, t.open)
}
