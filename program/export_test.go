package program

import "time"

// RunHere runs a program in this process, as a child would, for tests that run
// thousands.
func RunHere(source Source, answers []*Answer, earlier Trace, limits Limits) Outcome {
	limits = limits.withDefaults()
	return execute(request{Source: source, Answers: answers, Earlier: earlier, Limits: limits}, time.Now().Add(limits.Time))
}
