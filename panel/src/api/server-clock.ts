/** The `Date` header has a resolution of a second, and the answer was on its way for a while. */
const TOLERATED_MS = 5_000
let aheadMs = 0

/** Notes the service's time when an answer arrives. */
export function noteServerTime(headers: Headers): void {
  const difference = Date.parse(headers.get('date') ?? '') - Date.now()
  if (!Number.isNaN(difference)) aheadMs = Math.abs(difference) > TOLERATED_MS ? difference : 0
}

/** The service's time, with which its times are compared: the browser's clock may be wrong. Milliseconds since 1970. */
export function serverNow(): number {
  return Date.now() + aheadMs
}
