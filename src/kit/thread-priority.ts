import { getPriority, setPriority } from 'node:os'

const LOWEST = 19

/**
 * Lets the other threads of the process run first when cores are scarce. Does nothing except on Linux: on other systems
 * a priority belongs to the whole process. Threads and processes that this thread starts inherit its priority.
 * @param steps of `nice`. With 4 more, a thread gets two fifths of the core time of a competing thread; with 10 more, a
 *   tenth
 */
export function lowerThreadPriority(steps: number): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(LOWEST, getPriority() + steps))
  } catch {
    // If the host forbids it, the usual priority remains.
  }
}
