package interrupt

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// The kinds of a permission's options. The "always" kinds are shown only where decisions are
// remembered (R9).
const (
	PermissionAllowOnce    = "allow_once"
	PermissionAllowAlways  = "allow_always"
	PermissionRejectOnce   = "reject_once"
	PermissionRejectAlways = "reject_always"
)

// A PermissionOption is one way to answer a permission. The kinds are those of ACP's
// PermissionOptionKind: https://agentclientprotocol.com/protocol/tool-calls#requesting-permission
type PermissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Allows reports whether choosing the option is a yes.
func (o PermissionOption) Allows() bool {
	return o.Kind == PermissionAllowOnce || o.Kind == PermissionAllowAlways
}

// DefaultPermissionOptions returns one option of each of the four kinds, its ID equal to its kind.
// The slice is the caller's own.
func DefaultPermissionOptions() []PermissionOption {
	return []PermissionOption{
		{PermissionAllowOnce, "Allow once", PermissionAllowOnce},
		{PermissionAllowAlways, "Always allow", PermissionAllowAlways},
		{PermissionRejectOnce, "Reject", PermissionRejectOnce},
		{PermissionRejectAlways, "Always reject", PermissionRejectAlways},
	}
}

// A ToolPermissionInterrupt asks whether a tool may run. The arguments it would run with are shown
// beside it by whoever runs the tool, and what runs is checked against them. Its zero value is
// invalid; make it with [ToolPermission].
type ToolPermissionInterrupt struct {
	ToolName string             `json:"toolName,omitempty"`
	Title    string             `json:"title,omitempty"`
	Options  []PermissionOption `json:"options"`

	// Key and Lifetime are the question's own (see [Keyed], [Limited]); they are not part of what
	// is shown.
	Key      string        `json:"-"`
	Lifetime time.Duration `json:"-"`

	// The decision, set by Return. Allowed is true only for an accepted option of an allowing kind.
	SelectedOptionID string `json:"-"`
	SelectedKind     string `json:"-"`
	Allowed          bool   `json:"-"`
	Action           Action `json:"-"`
}

// A ToolPermissionPayload is the payload that accepts one option of a permission. [Decline] and
// [Cancel] make the others.
type ToolPermissionPayload struct {
	InterruptId string `json:"interruptId,omitempty"` //nolint:revive // the published name
	OptionID    string `json:"optionId"`
}

// ToolPermission asks whether the tool may run, with the given options or, where there are none,
// [DefaultPermissionOptions].
func ToolPermission(toolName, title string, options ...PermissionOption) *ToolPermissionInterrupt {
	if len(options) == 0 {
		options = DefaultPermissionOptions()
	}
	return &ToolPermissionInterrupt{ToolName: toolName, Title: title, Options: slices.Clone(options)}
}

// TypeName returns "tool_permission".
func (p *ToolPermissionInterrupt) TypeName() string { return TypeToolPermission }

// Serialize returns the question without its decision.
func (p *ToolPermissionInterrupt) Serialize() ([]byte, error) { return serialize(p) }

func (p *ToolPermissionInterrupt) Error() string {
	return fmt.Sprintf("permission to run tool %q is needed", p.ToolName)
}

// QuestionKey returns Key.
func (p *ToolPermissionInterrupt) QuestionKey() string { return p.Key }

// QuestionLifetime returns Lifetime.
func (p *ToolPermissionInterrupt) QuestionLifetime() time.Duration { return p.Lifetime }

// Rejected reports whether the answer was a no: every accepted answer that does not allow is.
func (p *ToolPermissionInterrupt) Rejected() bool { return p.Action == ActionAccept && !p.Allowed }

// Validate reports what makes the question unfit to be shown, as a [*QuestionError].
func (p *ToolPermissionInterrupt) Validate() error {
	if p.ToolName == "" || !utf8.ValidString(p.ToolName) {
		return p.invalid("/toolName", "must be valid UTF-8 and not empty")
	}
	if !utf8.ValidString(p.Title) {
		return p.invalid("/title", "must be valid UTF-8")
	}
	if len(p.Options) == 0 {
		return p.invalid("/options", "must not be empty")
	}
	seen := make(map[string]bool, len(p.Options))
	for i, option := range p.Options {
		at := func(member string) string { return fmt.Sprintf("/options/%d/%s", i, member) }
		switch {
		case option.OptionID == "" || !utf8.ValidString(option.OptionID):
			return p.invalid(at("optionId"), "must be valid UTF-8 and not empty")
		case seen[option.OptionID]:
			return p.invalid(at("optionId"), fmt.Sprintf("%.64q is there twice", option.OptionID))
		case option.Name == "" || !utf8.ValidString(option.Name):
			return p.invalid(at("name"), "must be valid UTF-8 and not empty")
		case !option.Allows() && !rejects(option.Kind):
			return p.invalid(at("kind"), fmt.Sprintf("%.64q is none of allow_once, allow_always, reject_once, reject_always", option.Kind))
		}
		seen[option.OptionID] = true
	}
	return nil
}

// ValidatePayload checks an answer without changing anything.
func (p *ToolPermissionInterrupt) ValidatePayload(payload []byte) error {
	return validatePayload(p, TypeToolPermission, payload)
}

// Return sets the decision. An answer without its optionId is refused, as is one that names no
// option of the question.
func (p *ToolPermissionInterrupt) Return(payload []byte) error {
	return returnPayload(p, TypeToolPermission, payload)
}

func (p *ToolPermissionInterrupt) fits(a answer) error {
	_, err := p.chosen(a)
	return err
}

func (p *ToolPermissionInterrupt) settle(a answer) error {
	option, err := p.chosen(a)
	if err != nil {
		return err
	}
	p.Action, p.SelectedOptionID, p.SelectedKind = a.Action, option.OptionID, option.Kind
	p.Allowed = a.Action == ActionAccept && option.Allows()
	return nil
}

// chosen returns the option that an answer accepts; none where it accepts nothing.
func (p *ToolPermissionInterrupt) chosen(a answer) (PermissionOption, error) {
	if err := a.only(TypeToolPermission, "optionId"); err != nil || a.Action != ActionAccept {
		return PermissionOption{}, err
	}
	raw, ok := a.field("optionId")
	if !ok {
		return PermissionOption{}, &PayloadError{TypeToolPermission, "/optionId", "is missing"}
	}
	var id string
	if err := readString(TypeToolPermission, "optionId", []byte(raw), &id); err != nil {
		return PermissionOption{}, err
	}
	for _, option := range p.Options {
		if option.OptionID == id {
			return option, nil
		}
	}
	return PermissionOption{}, &PayloadError{TypeToolPermission, "/optionId", "names no option of the question"}
}

func (p *ToolPermissionInterrupt) clone() Interrupt {
	dup := *p
	dup.Options = slices.Clone(p.Options)
	return &dup
}

func (p *ToolPermissionInterrupt) invalid(path, reason string) error {
	return &QuestionError{TypeToolPermission, path, reason}
}

func rejects(kind string) bool { return kind == PermissionRejectOnce || kind == PermissionRejectAlways }
