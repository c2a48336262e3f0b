package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// fits checks what a form gave by the schema of the same body in the API, so that a
// page can do nothing that the API refuses.
func (s *server) fits(body any) error {
	registry := s.huma.OpenAPI().Components.Schemas
	schema := registry.Schema(reflect.TypeOf(body), true, "")
	var plain any
	if err := json.Unmarshal(encode(body), &plain); err != nil {
		return err
	}
	var result huma.ValidateResult
	huma.Validate(registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, plain, &result)
	if len(result.Errors) == 0 {
		return nil
	}
	return humaProblem(422, "validation failed", result.Errors)
}
