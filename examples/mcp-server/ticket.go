package main

import (
	"context"
	"encoding/json"

	"github.com/parley-go/parley/interrupt"
)

// A ticket has a field of every kind. Estimate keeps all its digits.
type ticket struct {
	Title    string      `json:"title" title:"Title" minLength:"3" maxLength:"80"`
	Reporter string      `json:"reporter" title:"Reporter" format:"email"`
	Priority string      `json:"priority" title:"Priority" enum:"low,high" enumNames:"Low,High" default:"low"`
	Number   int64       `json:"number" title:"Number of the incident"`
	Estimate json.Number `json:"estimate,omitempty" title:"Estimate in days" minimum:"0"`
	Urgent   bool        `json:"urgent" title:"Urgent"`
	Labels   []string    `json:"labels,omitempty" title:"Labels" enum:"bug,docs,feature" maxItems:"2"`
}

func createTicket(ctx context.Context, _ struct{}) (ticket, error) {
	form, err := interrupt.Ask(ctx, interrupt.FormFor[ticket]("What is the ticket about?"))
	if err != nil {
		return ticket{}, err
	}
	return form.Value()
}
