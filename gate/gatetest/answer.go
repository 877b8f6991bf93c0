package gatetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parley-go/parley/interrupt"
)

// An Answer is what the person of a script does with one question. Make it with one of the
// functions of this package.
type Answer struct {
	name    string // as it was written, for reports
	payload func(q interrupt.Interrupt) (payload string, fits bool)
	after   time.Duration
	invalid bool
}

// Allow gives a permission: it takes the first option that allows.
func Allow() Answer { return permission("Allow()", true) }

// Reject rejects a permission: it takes the first option that rejects. It is not [Decline].
func Reject() Answer { return permission("Reject()", false) }

func permission(name string, allow bool) Answer {
	return Answer{name: name, payload: func(q interrupt.Interrupt) (string, bool) {
		p, ok := q.(*interrupt.ToolPermissionInterrupt)
		if !ok {
			return "", false
		}
		i := slices.IndexFunc(p.Options, func(o interrupt.PermissionOption) bool { return o.Allows() == allow })
		if i < 0 {
			return "", false
		}
		return fmt.Sprintf(`{"optionId":%s}`, quote(p.Options[i].OptionID)), true
	}}
}

// Choose takes one choice of a selection, counted from zero.
func Choose(index int) Answer {
	return forType[*interrupt.UserSelectionInterrupt](fmt.Sprintf("Choose(%d)", index), fmt.Sprintf(`{"selectionIdx":%d}`, index))
}

// Fill fills in a form. The content is a JSON object, {} included.
func Fill(content string) Answer {
	return forType[*interrupt.FormInterrupt](fmt.Sprintf("Fill(`%s`)", content), `{"content":`+content+`}`)
}

// Visit consents to open the page of a URL.
func Visit() Answer { return forType[*interrupt.URLInterrupt]("Visit()", `{}`) }

// Decline declines a question of any type.
func Decline() Answer { return payload("Decline()", string(interrupt.Decline(""))) }

// Cancel breaks a question of any type off.
func Cancel() Answer { return payload("Cancel()", string(interrupt.Cancel(""))) }

// Payload gives a question of any type that payload, a JSON object: for types of your own, and for
// options that [Allow] and [Reject] do not take.
func Payload(object string) Answer { return payload(fmt.Sprintf("Payload(`%s`)", object), object) }

// Invalid gives a question a payload that has to be refused as [gate.ErrInvalidAnswer]. Nothing
// changes then (R16): the prompt is answered anew, with the answers that come next.
func Invalid(object string) Answer {
	a := payload(fmt.Sprintf("Invalid(`%s`)", object), object)
	a.invalid = true
	return a
}

// After is the same answer, given when that time has passed since the answer before. An interaction
// waits ten minutes where its tool and its questions say nothing shorter (R30).
func (a Answer) After(d time.Duration) Answer {
	a.after += d
	return a
}

func payload(name, object string) Answer {
	return Answer{name: name, payload: func(interrupt.Interrupt) (string, bool) { return object, true }}
}

func forType[Q interrupt.Interrupt](name, object string) Answer {
	return Answer{name: name, payload: func(q interrupt.Interrupt) (string, bool) {
		_, ok := q.(Q)
		return object, ok
	}}
}

// unfit is a payload that no such question takes.
func unfit(q interrupt.Interrupt) json.RawMessage {
	switch q := q.(type) {
	case *interrupt.ToolPermissionInterrupt:
		return json.RawMessage(`{"optionId":"none of the options"}`)
	case *interrupt.UserSelectionInterrupt:
		return json.RawMessage(`{"selectionIdx":` + strconv.Itoa(len(q.Options)) + `}`)
	case *interrupt.FormInterrupt:
		return json.RawMessage(`{"content":{"none of the fields":true}}`)
	case *interrupt.URLInterrupt:
		return json.RawMessage(`{"content":{}}`)
	}
	return json.RawMessage(`{"action":"none of the actions"}`)
}

func quote(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(quoted)
}
