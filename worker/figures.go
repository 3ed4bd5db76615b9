package worker

func (w *Worker) offerFigures() {}
