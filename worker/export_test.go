package worker

// Calm is how many steps that nobody waits for load or commit now, and how many may.
func (w *Worker) Calm() (now, most int) { return len(w.calm), cap(w.calm) }

// FillCalm takes every place of the steps that nobody waits for.
func (w *Worker) FillCalm() {
	for range cap(w.calm) {
		w.calm <- struct{}{}
	}
}
