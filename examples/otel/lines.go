package main

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// lines are the series of what a reader collected, one a line.
func lines(all metricdata.ResourceMetrics) []string {
	var found []string
	series := func(name string, set attribute.Set, value string) {
		attributes := strings.ReplaceAll(set.Encoded(attribute.DefaultEncoder()), "parley.", "")
		found = append(found, fmt.Sprintf("%s{%s} %s", name, attributes, value))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					series(m.Name, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					series(m.Name, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					series(m.Name, p.Attributes, fmt.Sprintf("%d in %g%s", p.Count, p.Sum, m.Unit))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}
