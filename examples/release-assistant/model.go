package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/internal/scripted"
)

const (
	request     = "Release the api service."
	instruction = "You release services. Look at the changes of the service first. Then call migrate and deploy, both in one turn: " +
		"a person is asked before either of them does anything, so do not ask yourself. At the end say in one sentence what was done."
)

// chooseModel returns the scripted model, or that of the endpoint that the environment names.
func chooseModel(ctx context.Context, getenv func(string) string) (model.ToolCallingChatModel, error) {
	var missing []string
	values := map[string]string{}
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"} {
		if values[name] = getenv(name); values[name] == "" {
			missing = append(missing, name)
		}
	}
	switch len(missing) {
	case len(values):
		return scripted.Func(script), nil
	case 0:
		return openai.NewChatModel(ctx, &openai.ChatModelConfig{
			BaseURL: values["OPENAI_BASE_URL"], APIKey: values["OPENAI_API_KEY"], Model: values["OPENAI_MODEL"],
		})
	}
	return nil, fmt.Errorf("choose model: set %s as well, or none of the three for the scripted model", strings.Join(missing, " and "))
}

// script is the model that needs no network: it looks, asks for both steps in one turn, and sums
// up.
func script(input []*schema.Message) (*schema.Message, error) {
	var told []string
	for _, m := range input {
		if m.Role == schema.Tool {
			told = append(told, m.Content)
		}
	}
	api := service{"api"}
	switch len(told) {
	case 0:
		answer := scripted.Do(scripted.Call{ID: "1", Tool: "changes", Arguments: api})
		answer.Content = "I look at what changed."
		return answer, nil
	case 1:
		migrate, deploy := scripted.Call{ID: "2", Tool: "migrate", Arguments: api}, scripted.Call{ID: "3", Tool: "deploy", Arguments: api}
		answer := scripted.Do(migrate, deploy)
		answer.Content = "The database comes first, then the service."
		return answer, nil
	}
	return scripted.Say("The release: " + strings.Join(told[1:], "; ")), nil
}
