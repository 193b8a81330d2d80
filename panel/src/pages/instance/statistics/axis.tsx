import { useLanguage } from '../../../i18n/i18n.tsx'
import { useTimeZone } from '../../../text/time-zone.ts'
import classes from './statistics.module.css'

const DAY_MS = 86_400_000

/** The times below a chart. */
export function Axis({ buckets }: { buckets: readonly { at: string }[] }) {
  const { language } = useLanguage()
  const timeZone = useTimeZone()
  const first = buckets[0]
  const last = buckets.at(-1)
  if (!first || !last) return null
  const isLong = Date.parse(last.at) - Date.parse(first.at) >= DAY_MS
  const text = (at: string) =>
    new Date(at).toLocaleString(
      language,
      isLong
        ? { timeZone, day: 'numeric', month: 'short' }
        : { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    )
  return (
    <div className={classes.times} aria-hidden>
      <span>{text(first.at)}</span>
      <span>{text(buckets[Math.floor(buckets.length / 2)]!.at)}</span>
      <span>{text(last.at)}</span>
    </div>
  )
}
