import { getPriority, setPriority } from 'node:os'

const LOWEST = 19

/**
 * Lets the other threads of the process run first when there are not enough cores. On Linux a priority belongs to a thread, elsewhere
 * to the whole process: there nothing changes. Threads and processes that this thread starts inherit its priority.
 * @param steps of `nice`: with 4 more a thread gets two fifths of the time of another one that also wants the core, with 10 more a tenth
 */
export function lowerThreadPriority(steps: number): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(LOWEST, getPriority() + steps))
  } catch {
    // If the host forbids it, the usual priority remains.
  }
}
