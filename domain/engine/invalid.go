package engine

import (
	"errors"
	"fmt"

	"openbot/domain"
)

// messageOf gives the words of an error that are for people.
func messageOf(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// invalid is an error about one field of an input.
func invalid(path, message string) *domain.Error {
	return &domain.Error{Code: domain.CodeInvalid, Tag: "InvalidInput", Message: path + " " + message,
		Faults: []domain.Fault{{Path: path, Message: message}}}
}

func invalidf(path, format string, args ...any) *domain.Error {
	return invalid(path, fmt.Sprintf(format, args...))
}

func invalidFaults(faults []domain.Fault) *domain.Error {
	return &domain.Error{Code: domain.CodeInvalid, Tag: "InvalidInput",
		Message: faults[0].Path + " " + faults[0].Message, Faults: faults}
}
