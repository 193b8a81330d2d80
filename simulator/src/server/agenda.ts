/** The longest delay of a timer. */
const MAX_DELAY_MS = 2 ** 31 - 1

interface Appointment {
  /** In milliseconds as `performance.now` counts them, so that a change of the clock has no effect. */
  at: number
  run: () => void
}

/** Runs any number of scheduled tasks on one timer. */
export class Agenda {
  /** A binary heap with the earliest task first. */
  readonly #heap: Appointment[] = []
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #closed = false

  /** @param at milliseconds since the epoch */
  add(at: number, run: () => void): void {
    if (this.#closed) return
    this.#push({ at: at - Date.now() + performance.now(), run })
    this.#arm()
  }

  close(): void {
    this.#closed = true
    this.#heap.length = 0
    clearTimeout(this.#timer)
  }

  #arm(): void {
    const next = this.#heap[0]
    if (!next || next.at >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = next.at
    const delayMs = Math.ceil(Math.max(0, next.at - performance.now()))
    this.#timer = setTimeout(() => this.#runDue(), Math.min(delayMs, MAX_DELAY_MS))
  }

  #runDue(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    while (this.#heap[0] && this.#heap[0].at <= performance.now()) this.#pop().run()
    this.#arm()
  }

  #push(one: Appointment): void {
    const heap = this.#heap
    let at = heap.push(one) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.at <= one.at) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = one
  }

  #pop(): Appointment {
    const heap = this.#heap
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++
      if (heap[child]!.at >= last.at) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}
