import { useWords } from '../i18n/i18n.tsx'

/** The recipient of a message: a formatted number, or a group. */
export function Recipient({ to }: { to: string }) {
  const words = useWords()
  return to.endsWith('@g.us') ? (
    <span title={to}>
      {words.messages.group} {to.replace('@g.us', '')}
    </span>
  ) : (
    <span>+{to}</span>
  )
}
