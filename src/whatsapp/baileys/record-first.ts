import type { BinaryNode, WASocket } from 'baileys'
import { asResend } from './signal/retry-requests.ts'

/**
 * Holds stanzas back from Baileys, who would acknowledge them, until what they tell is recorded.
 * @param event Baileys' name for the kind of stanza
 * @param record null where a stanza tells nothing; one that resolves to false is not handed on
 * @param closed nothing is handed on once it is aborted
 * @param onFailed the stanza was not recorded, and is not acknowledged
 */
export function recordFirst(
  { ws }: WASocket,
  event: string,
  record: (stanza: BinaryNode) => Promise<boolean> | null,
  closed: AbortSignal,
  onFailed: (error: unknown) => void,
): void {
  const baileys = ws.listeners(event)
  ws.removeAllListeners(event)
  ws.on(event, (stanza: BinaryNode) => {
    const handOn = () => {
      if (closed.aborted) return
      asResend(() => {
        for (const listener of baileys) listener.call(ws, stanza)
      })
    }
    const recorded = record(stanza)
    if (recorded === null) handOn()
    else recorded.then(known => known && handOn(), onFailed)
  })
}
