package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/parley-go/parley/agent"
	"github.com/parley-go/parley/gate"
	"github.com/parley-go/parley/internal/scripted"
)

const instruction = "You work on the files of a directory with your tools. A person is asked before a tool does anything, " +
	"so do not ask yourself. At the end say in one sentence what was done."

// build makes an agent of eino's with these tools.
func build(m model.ToolCallingChatModel, tools []*gate.Tool) agent.Build {
	return func(ctx context.Context) (adk.Agent, error) {
		var faces []tool.BaseTool
		for _, one := range tools {
			faces = append(faces, agent.Tool(one))
		}
		return adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
			Name: "coder", Description: "works on files", Instruction: instruction, Model: agent.Model(m),
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: faces}},
		})
	}
}

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

// calls are what the scripted model does for a word of the message.
var calls = []struct {
	word, tool string
	arguments  any
}{
	{"edit", "edit_file", editInput{Path: "notes.txt", New: "a line of the agent's\n"}},
	{"run", "run_command", commandInput{"echo it ran"}},
	{"branch", "pick_branch", branchInput{[]string{"main", "next"}}},
	{"commit", "commit", commitInput{[]string{"notes.txt"}}},
	{"sign in", "sign_in", struct{}{}},
}

// script is the model that needs no network: it does what the latest message names, all at once,
// and says what came of it.
func script(input []*schema.Message) (*schema.Message, error) {
	var told []string
	asked := ""
	for _, m := range input {
		switch m.Role {
		case schema.User:
			asked, told = strings.ToLower(m.Content), nil
		case schema.Tool:
			told = append(told, m.Content)
		}
	}
	if told != nil {
		return scripted.Say(strings.Join(told, "; ")), nil
	}
	var do []scripted.Call
	for i, c := range calls {
		if strings.Contains(asked, c.word) {
			do = append(do, scripted.Call{ID: fmt.Sprint(i + 1), Tool: c.tool, Arguments: c.arguments})
		}
	}
	if do == nil {
		return scripted.Say("This model is scripted: say edit, run, branch, commit or sign in."), nil
	}
	return scripted.Do(do...), nil
}
