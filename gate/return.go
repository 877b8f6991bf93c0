package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-go/parley/checkpoint"
)

// A Return is the answer to one question, named by its id.
type Return struct {
	InterruptID string
	Payload     json.RawMessage
	// Scope and By are as in an [AnswerRequest].
	Scope string
	By    string
}

// ReturnInterrupt is [Face.Answer] for a prompt with one question, by the question's id alone: who
// answers need not know of interactions and rounds. Where the prompt has several questions it is
// answered whole or not at all (R18): then this is ErrInvalidAnswer, which names a missing one. An
// id that no question has, or had, is ErrInvalidContinuation, which matches
// [interrupt.ErrInterruptNotFound].
func (f *Face) ReturnInterrupt(ctx context.Context, r Return) error {
	interaction, round, ok := parseQuestionID(r.InterruptID)
	if !ok {
		return fail(ErrInvalidContinuation, "there is no question %.80q", r.InterruptID)
	}
	return f.Answer(ctx, AnswerRequest{
		Interaction: interaction, Round: round, Answers: Answers{r.InterruptID: r.Payload}, Scope: r.Scope, By: r.By, only: r.InterruptID,
	})
}

// parseQuestionID takes an id apart, as makeRound puts it together. Which question of the round it
// is stands in the record.
func parseQuestionID(id string) (interaction checkpoint.ID, round int, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 3 {
		return interaction, 0, false
	}
	interaction, err := checkpoint.ParseID(parts[0])
	if err != nil {
		return interaction, 0, false
	}
	round, err = strconv.Atoi(parts[1])
	return interaction, round, err == nil && round > 0
}

func asks(round checkpoint.Round, id string) bool {
	return slices.ContainsFunc(round.Questions, func(q checkpoint.Question) bool { return q.ID == id })
}
