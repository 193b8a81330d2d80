// Loaded into the service by `node --import`: a step of a passkey ceremony, and no other timer, ends after 3 s instead of 2 minutes.
const STEP_MS = 120_000
const SHORT_MS = 3_000
const { setTimeout: original } = globalThis
globalThis.setTimeout = Object.assign(
  (task, delayMs, ...values) => original(task, delayMs === STEP_MS ? SHORT_MS : delayMs, ...values),
  original,
)
