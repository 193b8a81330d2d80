import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'

/** A formatted number, a group, or the LID address of a person. */
export function recipientText(to: string, words: Words): string {
  if (to.endsWith('@g.us')) return `${words.messages.group} ${to.replace('@g.us', '')}`
  return to.includes('@') ? to : `+${to}`
}

export function Recipient({ to }: { to: string }) {
  return <span title={to}>{recipientText(to, useWords())}</span>
}
