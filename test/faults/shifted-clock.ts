/**
 * Loaded into a node with `--import`: its wall clock is off, and jumps. `CLOCK_SHIFTS_MS` are the shifts, separated by
 * commas; the first one holds from the start, each SIGUSR2 brings the next. The monotonic clock goes on as it should.
 */
const shiftsMs = (process.env['CLOCK_SHIFTS_MS'] ?? '0').split(',').map(Number)
let shiftMs = shiftsMs.shift() ?? 0

const SystemDate = Date
const now = () => SystemDate.now() + shiftMs

// What Node took for the time of its start was off as well.
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + shiftMs })

globalThis.Date = new Proxy(SystemDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new SystemDate(now()).toString(),
  get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
})

process.on('SIGUSR2', () => {
  shiftMs = shiftsMs.shift() ?? shiftMs
})
