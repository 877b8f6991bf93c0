// Otel shows what OpenTelemetry can tell of a gate: what happened, how long people and handlers
// took, and how many questions are open. Run it with: go run .
//
// It is a module of its own, so that whoever uses parley does not get OpenTelemetry's modules.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/parley-go/parley/checkpoint"
	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A host is a gate with one tool, on a clock that moves when it is told to.
type host struct {
	*gate.Gate
	now  time.Time
	disk error // what becomes of a deployment
}

func open(ctx context.Context, store checkpoint.Store, t *telemetry) (_ *host, err error) {
	h := &host{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	deploy := gate.NewTool("deploy", func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := interrupt.Ask(ctx, interrupt.ToolPermission("deploy", "Deploy to production")); err != nil {
			return "", err
		}
		h.now = h.now.Add(5 * time.Second)
		return "deployed", h.disk
	}, nil)
	h.Gate, err = gate.Open(ctx, store, &gate.Options{
		Tools: []*gate.Tool{deploy}, Keys: [][]byte{gate.NewKey()}, Observer: t, Now: func() time.Time { return h.now },
	})
	return h, err
}

// ask makes a call, and returns the one that answers its question.
func (h *host) ask(ctx context.Context, option string) (gate.Call, error) {
	call := gate.Call{
		Tool: "deploy", Arguments: []byte(`{}`), Scope: "ann", Session: "window 1",
		Facilities: []interrupt.Facility{interrupt.FacilityPermission},
	}
	outcome, err := h.Invoke(ctx, call)
	if err != nil {
		return call, err
	}
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{outcome.Prompt.Questions[0].ID: fmt.Appendf(nil, `{"optionId":%q}`, option)}
	return call, nil
}

// Ann allows it twice, and the disk is full the second time; she rejects it; she is away; and one
// question is open in the end. A real host has exporters in the place of the reader.
func main() {
	ctx := context.Background()
	reader := metric.NewManualReader()
	t, err := newTelemetry(metric.NewMeterProvider(metric.WithReader(reader)).Meter("parley"), noop.NewTracerProvider().Tracer("parley"))
	if err != nil {
		log.Fatal(err)
	}
	h, err := open(ctx, memstore.New(), t)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close(ctx)
	watch, err := t.watch(h.Gate, "deploy")
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Unregister()
	for _, scene := range []struct {
		option string
		waits  time.Duration
		disk   error
	}{
		{"allow_once", time.Minute, nil},
		{"allow_once", 2 * time.Minute, errors.New("the disk is full")},
		{"reject_once", 3 * time.Minute, nil},
		{"allow_once", 10 * time.Minute, nil},
	} {
		call, err := h.ask(ctx, scene.option)
		if err != nil {
			log.Fatal(err)
		}
		h.now, h.disk = h.now.Add(scene.waits), scene.disk
		outcome, err := h.Invoke(ctx, call)
		fmt.Printf("%s %v\n", outcome.Result, err)
	}
	if _, err := h.ask(ctx, "allow_once"); err != nil {
		log.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, line := range lines(all) {
		fmt.Println(line)
	}
}
