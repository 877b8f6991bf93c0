package interrupt

import (
	"bytes"
	"fmt"
	"runtime/debug"
)

// A Versioned type counts the versions of what Serialize writes. The version of the registered type
// is recorded with each question, so that a later release knows what it reads. A type that is not a
// Versioned one is of version 0 for ever, or until it becomes one (R14).
//
// Register reads it from a zero value: the version is the type's, not the question's.
type Versioned interface {
	QuestionVersion() int
}

// A Renamed type had other names once, under which there are records. [Register] makes them known
// too; they stay taken. New questions have the name of now.
type Renamed interface {
	FormerNames() []string
}

// An Upgrader is a [Versioned] type that can read what its earlier versions wrote: UpgradeBody
// returns it as the version of now writes it. It is called on a zero value, each time that an old
// question is read, and changes nothing in the record. A question whose body cannot be upgraded is
// quarantined; so is one of an older version of a type that is no Upgrader, and one of a newer
// version than the type knows.
//
// What was answered to the old form comes to Return of the new one, which has to take it. A
// question that was answered in an old form is matched with the one that the handler asks now as
// any other is: by its key or, once it is upgraded, by what it shows (R2).
type Upgrader interface {
	UpgradeBody(version int, body []byte) ([]byte, error)
}

// Interrupt reads the question back, of whatever version and under whatever former name it was
// written. Only Type, Version and Body are looked at. The error matches [ErrInvalidQuestion]; so
// does that of a type whose own code panics.
func (q Question) Interrupt() (read Interrupt, err error) {
	defer func() {
		if value := recover(); value != nil {
			read, err = nil, &privateError{&QuestionError{q.Type, "", "cannot be read back: its type panics"}, panicked(value)}
		}
	}()
	is, ok := registered(q.Type)
	switch {
	case !ok:
		return nil, &QuestionError{q.Type, "", "type is not registered"}
	case q.Version == is.version:
		return Rehydrate(q.Type, q.Body)
	case q.Version > is.version:
		return nil, &QuestionError{q.Type, "", fmt.Sprintf("is of version %d, and only those up to %d are known", q.Version, is.version)}
	}
	upgrader, ok := is.factory().(Upgrader)
	if !ok || q.Version < 0 {
		return nil, &QuestionError{q.Type, "", fmt.Sprintf("is of version %d, which nothing upgrades to %d", q.Version, is.version)}
	}
	body, err := upgrader.UpgradeBody(q.Version, bytes.Clone(q.Body))
	if err != nil {
		return nil, &privateError{&QuestionError{q.Type, "", fmt.Sprintf("cannot be upgraded from version %d", q.Version)}, err}
	}
	return Rehydrate(q.Type, body)
}

// Current returns the question as it would be recorded today: under the type's name and in the
// version of now. It is the same question where that is how it was recorded. The error is that of
// Interrupt, or of [Snapshot].
func (q Question) Current() (Question, error) {
	is, ok := registered(q.Type)
	if ok && is.name == q.Type && is.version == q.Version {
		return q, nil
	}
	read, err := q.Interrupt()
	if err != nil {
		return Question{}, err
	}
	return Snapshot(read)
}

// panicked is the private cause where a type's own code panicked: where it did is told, as it would
// be without a recover.
func panicked(value any) error {
	if err, ok := value.(error); ok {
		return fmt.Errorf("panic: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic: %v\n%s", value, debug.Stack())
}

// CurrentName returns the name of now of a type, which may be given by a former one; where the type
// is not registered, the same name and false.
func CurrentName(typeName string) (name string, ok bool) {
	is, ok := registered(typeName)
	if !ok {
		return typeName, false
	}
	return is.name, true
}
