import { type BinaryNode, getBinaryNodeChild, type WASocket } from 'baileys'
import type { IncomingCall } from '../../../domain/connection/incoming-call.ts'
import { isSelf, lidAddressOf, numberOf, type Self } from '../addresses.ts'
import type { LibraryCalls } from '../library-scope.ts'
import type { LinkEvents } from './events.ts'

interface CallNotices {
  events: Pick<LinkEvents, 'called'>
  calls: LibraryCalls
  self(): Self
  /** A phone call could not be handled, so it was not acknowledged to WhatsApp. */
  onFailed(error: unknown): void
}

/** Lets the instance reject each phone call before Baileys acknowledges it to WhatsApp. */
export function answerCalls(socket: WASocket, { events, calls, self, onFailed }: CallNotices): void {
  const { ws } = socket
  const baileys = ws.listeners('CB:call')
  ws.removeAllListeners('CB:call')
  ws.on('CB:call', (node: BinaryNode) => {
    const passOn = () => {
      if (calls.closed.aborted) return
      for (const listener of baileys) listener.call(ws, node)
    }
    // A linked device gets a notice of the offer of a group call.
    const offer = getBinaryNodeChild(node, 'offer') ?? getBinaryNodeChild(node, 'offer_notice')
    const creator = offer?.attrs['call-creator']
    const id = offer?.attrs['call-id']
    // WhatsApp may announce a call of our own phone, too.
    if (!offer || !creator || !id || isSelf(creator, self())) return passOn()
    const answer = async () => {
      const from = await findCaller(socket, creator, offer.attrs['caller_pn'])
      if (from === null) return
      const isGroup = offer.attrs['type'] === 'group' || offer.attrs['group-jid'] !== undefined
      if (!(await events.called({ id, from, isGroup, at: beginOf(node) }))) return
      // WhatsApp refuses the rejection if the call has ended.
      calls.inBackground('reject', () => socket.rejectCall(id, creator))
    }
    calls.run(answer).then(passOn, onFailed)
  })
}

async function findCaller(
  socket: WASocket,
  creator: string,
  pn: string | undefined,
): Promise<IncomingCall['from'] | null> {
  const number = numberOf(pn) ?? numberOf(creator)
  if (number !== undefined) return number
  const mapped = await socket.signalRepository.lidMapping.getPNForLID(creator).catch(() => null)
  return numberOf(mapped) ?? lidAddressOf(creator)
}

/** WhatsApp's time, or ours if WhatsApp states none. */
function beginOf({ attrs }: BinaryNode): number {
  return Number(attrs['t']) * 1_000 || Date.now()
}
