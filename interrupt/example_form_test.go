package interrupt_test

import (
	"errors"
	"fmt"

	"github.com/parley-go/parley/interrupt"
)

// A form is made of a struct: what to ask stands in its tags, and the answer is one.
func ExampleFormFor() {
	type Release struct {
		Service  string   `json:"service" title:"Service" enum:"api,web" enumNames:"The API,The web site"`
		Replicas int      `json:"replicas,omitempty" minimum:"1" maximum:"9" default:"3"`
		Mail     *string  `json:"mail" title:"Tell somebody" format:"email"`
		Regions  []string `json:"regions" enum:"eu,us,ap" minItems:"1"`
	}
	form := interrupt.FormFor[Release]("What is to be released?")

	// In a handler: answered, err := interrupt.Ask(ctx, form)
	answer := func(payload string) {
		_, err := interrupt.Apply(form, []byte(payload))
		if unfit, ok := errors.AsType[*interrupt.PayloadError](err); ok {
			fmt.Println(unfit.Path, unfit.Reason)
		}
	}
	answer(`{"content":{"service":"api","replicas":"5","regions":["eu"]}}`)
	answer(`{"content":{"service":"api","replicas":5,"regions":["eu","us"]}}`)

	release, err := form.Value()
	fmt.Println(release.Service, release.Replicas, release.Mail == nil, release.Regions, err)

	type Map struct {
		Places map[string]string `json:"places"`
	}
	fmt.Println(interrupt.FormFor[Map]("Where?").Validate())
	// Output:
	// /content/replicas must be a number
	// api 5 true [eu us] <nil>
	// form question: /schema/properties/places: field Places is of type map[string]string, which a form cannot ask for
}
