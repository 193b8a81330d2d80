import type { MessageState } from '../api/types.ts'

/** The marks of a sent message. Its state is also written beside them for screen readers. */
export function Ticks({ status }: { status: MessageState }) {
  if (status === 'queued') return <span aria-hidden>◷</span>
  if (status === 'failed') return <span aria-hidden>✕</span>
  return (
    <svg width="18" height="12" viewBox="0 0 18 12" fill="none" stroke="currentColor" strokeWidth="1.7" aria-hidden>
      <path d="m1 6.5 3.5 3.500L11 2" />
      {status !== 'sent' && <path d="m8.5 9.5.6.500L16 2" />}
    </svg>
  )
}
