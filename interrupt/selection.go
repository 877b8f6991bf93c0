package interrupt

import (
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// A UserChoice is one of the choices of a selection.
type UserChoice struct {
	Title         string `json:"title"`
	Description   string `json:"description"`
	IsRecommended bool   `json:"isRecommended"`
}

// A UserSelectionInterrupt asks a person to choose one of several. Its zero value is invalid; make
// it with [UserSelection].
type UserSelectionInterrupt struct {
	Options []UserChoice `json:"options"`

	// Key and Lifetime are the question's own (see [Keyed], [Limited]); they are not part of what
	// is shown.
	Key      string        `json:"-"`
	Lifetime time.Duration `json:"-"`

	// The decision, set by Return. ConfirmedChoice is nil unless a choice was accepted.
	ConfirmedChoice *UserChoice `json:"-"`
	Action          Action      `json:"-"`
}

// A UserSelectionPayload is the payload that accepts one choice, counted from zero. [Decline] and
// [Cancel] make the others.
type UserSelectionPayload struct {
	InterruptId  string `json:"interruptId"` //nolint:revive // the published name
	SelectionIdx int    `json:"selectionIdx"`
}

// UserSelection asks a person to choose one of two or more choices with unique titles, at most one
// of them recommended.
func UserSelection(choices ...UserChoice) *UserSelectionInterrupt {
	return &UserSelectionInterrupt{Options: slices.Clone(choices)}
}

// TypeName returns "user_selection".
func (s *UserSelectionInterrupt) TypeName() string { return TypeUserSelection }

// Serialize returns the question without its decision.
func (s *UserSelectionInterrupt) Serialize() ([]byte, error) { return serialize(s) }

func (s *UserSelectionInterrupt) Error() string {
	return fmt.Sprintf("a selection among %d choices is needed", len(s.Options))
}

// QuestionKey returns Key.
func (s *UserSelectionInterrupt) QuestionKey() string { return s.Key }

// QuestionLifetime returns Lifetime.
func (s *UserSelectionInterrupt) QuestionLifetime() time.Duration { return s.Lifetime }

// Validate reports what makes the question unfit to be shown, as a [*QuestionError].
func (s *UserSelectionInterrupt) Validate() error {
	if len(s.Options) < 2 {
		return &QuestionError{TypeUserSelection, "/options", "must hold two choices or more"}
	}
	seen := make(map[string]bool, len(s.Options))
	recommended := false
	for i, choice := range s.Options {
		at := func(member string) string { return fmt.Sprintf("/options/%d/%s", i, member) }
		switch {
		case choice.Title == "" || !utf8.ValidString(choice.Title):
			return &QuestionError{TypeUserSelection, at("title"), "must be valid UTF-8 and not empty"}
		case !utf8.ValidString(choice.Description):
			return &QuestionError{TypeUserSelection, at("description"), "must be valid UTF-8"}
		case seen[choice.Title]:
			return &QuestionError{TypeUserSelection, at("title"), fmt.Sprintf("%.64q is there twice", choice.Title)}
		case choice.IsRecommended && recommended:
			return &QuestionError{TypeUserSelection, at("isRecommended"), "another choice is recommended already"}
		}
		seen[choice.Title] = true
		recommended = recommended || choice.IsRecommended
	}
	return nil
}

// ValidatePayload checks an answer without changing anything.
func (s *UserSelectionInterrupt) ValidatePayload(payload []byte) error {
	return validatePayload(s, TypeUserSelection, payload)
}

// Return sets the decision. An answer without its selectionIdx is refused, never read as the first
// choice.
func (s *UserSelectionInterrupt) Return(payload []byte) error {
	return returnPayload(s, TypeUserSelection, payload)
}

func (s *UserSelectionInterrupt) fits(a answer) error {
	_, err := s.chosen(a)
	return err
}

func (s *UserSelectionInterrupt) settle(a answer) error {
	choice, err := s.chosen(a)
	if err != nil {
		return err
	}
	s.Action, s.ConfirmedChoice = a.Action, choice
	return nil
}

// chosen returns the choice that an answer accepts; nil where it accepts nothing.
func (s *UserSelectionInterrupt) chosen(a answer) (*UserChoice, error) {
	if err := a.only(TypeUserSelection, "selectionIdx"); err != nil || a.Action != ActionAccept {
		return nil, err
	}
	raw, ok := a.field("selectionIdx")
	if !ok {
		return nil, &PayloadError{TypeUserSelection, "/selectionIdx", "is missing"}
	}
	// No coercion: 1.0 and "1" are no index.
	idx, err := strconv.Atoi(string(raw))
	if err != nil {
		return nil, &PayloadError{TypeUserSelection, "/selectionIdx", "must be an integer"}
	}
	if idx < 0 || idx >= len(s.Options) {
		return nil, &PayloadError{TypeUserSelection, "/selectionIdx", fmt.Sprintf("must be between 0 and %d", len(s.Options)-1)}
	}
	choice := s.Options[idx]
	return &choice, nil
}

func (s *UserSelectionInterrupt) clone() Interrupt {
	dup := *s
	dup.Options = slices.Clone(s.Options)
	if s.ConfirmedChoice != nil {
		choice := *s.ConfirmedChoice
		dup.ConfirmedChoice = &choice
	}
	return &dup
}
