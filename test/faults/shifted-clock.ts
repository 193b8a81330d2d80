import { BroadcastChannel, getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'

/**
 * Loaded into a node with `--import`: its wall clock is off, and jumps. `CLOCK_SHIFTS_MS` are the shifts, separated by
 * commas; the first one holds from the start, each SIGUSR2 brings the next. The monotonic clock is not shifted.
 * All threads have the same clock.
 */
const shiftsMs = (process.env['CLOCK_SHIFTS_MS'] ?? '0').split(',').map(Number)
const startShiftMs = shiftsMs.shift() ?? 0
let shiftMs = (getEnvironmentData('shiftMs') as number | undefined) ?? startShiftMs

const SystemDate = Date
const now = () => SystemDate.now() + shiftMs

// The time that Node regards as its start is shifted as well.
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + startShiftMs })

globalThis.Date = new Proxy(SystemDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new SystemDate(now()).toString(),
  get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
})

const shifts = new BroadcastChannel('clock')
shifts.onmessage = ({ data }) => {
  shiftMs = data
}
shifts.unref()
if (isMainThread) {
  process.on('SIGUSR2', () => {
    shiftMs = shiftsMs.shift() ?? shiftMs
    setEnvironmentData('shiftMs', shiftMs)
    shifts.postMessage(shiftMs)
  })
}
