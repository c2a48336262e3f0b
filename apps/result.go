package apps

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openbot/domain"
)

// maxNote is how much of a name or address inside a result is shown, in bytes.
const maxNote = 300

// result makes what a model reads: clean text, cut to the limit, saying so.
func (a *Apps) result(text string, isError bool) domain.AppResult {
	text = cleanText(text)
	if len(text) <= a.options.ResultLimit {
		return domain.AppResult{Text: text, IsError: isError}
	}
	kept := cutText(text, a.options.ResultLimit)
	note := fmt.Sprintf("\n[cut: %d of %d bytes are not shown]", len(text)-len(kept), len(text))
	return domain.AppResult{Text: kept + note, IsError: isError, Cut: true}
}

// callText is the text of a tool's result; without any it is the structured part.
func callText(result *mcp.CallToolResult) string {
	text := contentText(result.Content)
	if text == "" && result.StructuredContent != nil {
		if data, err := json.Marshal(result.StructuredContent); err == nil {
			return string(data)
		}
	}
	return text
}

func contentText(contents []mcp.Content) string {
	parts := make([]string, 0, len(contents))
	for _, content := range contents {
		if part := onePart(content); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n")
}

func onePart(content mcp.Content) string {
	switch c := content.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes, not shown]", cleanLine(c.MIMEType, maxNote), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes, not shown]", cleanLine(c.MIMEType, maxNote), len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s: %s]", cleanLine(c.URI, maxNote), cleanLine(c.Name, maxNote))
	case *mcp.EmbeddedResource:
		return oneResource(c.Resource)
	}
	return "[content of a kind that is not shown]"
}

func resourceText(result *mcp.ReadResourceResult) string {
	parts := make([]string, 0, len(result.Contents))
	for _, content := range result.Contents {
		parts = append(parts, oneResource(content))
	}
	return strings.Join(parts, "\n")
}

func oneResource(c *mcp.ResourceContents) string {
	switch {
	case c == nil:
		return ""
	case c.Text == "" && len(c.Blob) > 0:
		return fmt.Sprintf("[resource %s, %s, %d bytes, not shown]",
			cleanLine(c.URI, maxNote), cleanLine(c.MIMEType, maxNote), len(c.Blob))
	}
	return c.Text
}

func promptText(result *mcp.GetPromptResult) string {
	var parts []string
	if result.Description != "" {
		parts = append(parts, result.Description)
	}
	for _, message := range result.Messages {
		if message != nil {
			parts = append(parts, string(message.Role)+": "+onePart(message.Content))
		}
	}
	return strings.Join(parts, "\n")
}
