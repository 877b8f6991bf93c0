package gate_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-go/parley/checkpoint/memstore"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/interrupt"
)

// A SignOff is a type of the application's own: whether a document may be published, and by whom it
// was read.
type SignOff struct {
	Document string `json:"document"`
	Approved bool   `json:"-"`
	Reader   string `json:"-"`
}

func (s *SignOff) TypeName() string           { return "example_sign_off" }
func (s *SignOff) Serialize() ([]byte, error) { return json.Marshal(s) }
func (s *SignOff) Error() string              { return "sign-off of " + s.Document + " is needed" }

// Return takes the type's own payload, which no person writes.
func (s *SignOff) Return(payload []byte) error {
	return json.Unmarshal(payload, &struct {
		Approved *bool
		Reader   *string
	}{&s.Approved, &s.Reader})
}

// Rejected makes an answer without approval one that interrupt.Ask does not go on with.
func (s *SignOff) Rejected() bool { return !s.Approved }

// Present makes the sign-off a form, which every host with forms can show.
func (s *SignOff) Present() interrupt.Interrupt {
	return interrupt.FormFor[struct {
		Approved bool   `json:"approved" title:"May be published"`
		Reader   string `json:"reader" title:"Read by" minLength:"1"`
	}]("Sign off " + s.Document)
}

// FromPresented turns the answer to the form into the type's own payload.
func (s *SignOff) FromPresented(answered interrupt.Interrupt) ([]byte, error) {
	return answered.(*interrupt.FormInterrupt).Content, nil
}

func init() { interrupt.Register(func() interrupt.Interrupt { return new(SignOff) }) }

// A type of the application's own presents itself as a form. The person answers the form; the
// handler gets the sign-off.
func Example_presenter() {
	publish := gate.NewTool("publish", func(ctx context.Context, in struct {
		Document string `json:"document"`
	}) (string, error) {
		signed, err := interrupt.Ask(ctx, &SignOff{Document: in.Document})
		if err != nil {
			return "", err
		}
		return "published, as read by " + signed.Reader, nil
	}, nil)
	ctx := context.Background()
	g, err := gate.Open(ctx, memstore.New(), &gate.Options{Tools: []*gate.Tool{publish}, Keys: [][]byte{testKey}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close(ctx)

	call := gate.Call{
		Tool: "publish", Arguments: json.RawMessage(`{"document":"the terms"}`), Scope: "ann", Session: "window 1",
		Facilities: []interrupt.Facility{interrupt.FacilityForm},
	}
	outcome, err := g.Invoke(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	question := outcome.Prompt.Questions[0]
	fmt.Println(question.Type, "by", question.PresentedBy)
	call.Token = outcome.Prompt.Token
	call.Answers = gate.Answers{question.ID: json.RawMessage(`{"content":{"approved":true,"reader":"Ann"}}`)}
	outcome, err = g.Invoke(ctx, call)
	fmt.Println(string(outcome.Result), err)
	// Output:
	// form by example_sign_off
	// "published, as read by Ann" <nil>
}
