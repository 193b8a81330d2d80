import { useAwaySince } from '../../api/live.ts'
import type { Connection, ConnectionCause } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { CONNECTION_TONES, ConnectionBadge, type Tone } from '../../components/badges.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { GuideLink } from '../../components/guide-link.tsx'
import { Ago } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { HandOut } from '../link/hand-out.tsx'
import { useConnect, useIsRequested } from './connect.ts'
import classes from './connection-card.module.css'
import { LINKING_FAILURES, Linking } from './linking.tsx'
import { asksForPasskey } from './passkey.tsx'
import { PasskeyOfInstance } from './passkey-of-instance.tsx'
import { Resume } from './resume.tsx'

/** While linking, any other cause means that WhatsApp gave no code. */
const ASKING = new Set<ConnectionCause>([
  'asking_for_code',
  'scan_qr_code',
  'type_pairing_code',
  'new_code_asked',
  'linking_interrupted',
])

const hasFailedToLink = ({ state, cause }: Connection) =>
  state === 'unlinked' && cause !== null && LINKING_FAILURES.has(cause)

/** The colour of the card. It also warns of linking that is hindered or failed, and of a restricted number. */
function toneOf(connection: Connection, isHindered: boolean): Tone {
  const { state, restriction } = connection
  if (isHindered || hasFailedToLink(connection)) return 'bad'
  return restriction && state === 'connected' ? 'wait' : CONNECTION_TONES[state]
}

/** True if WhatsApp gives no code, for a reason other than that it was just asked. */
function isLinkingHindered(connection: Connection): boolean {
  return isWaitingForCode(connection) && connection.cause !== null && !ASKING.has(connection.cause)
}

function isWaitingForCode(connection: Connection): boolean {
  const { kind, state, qr, pairingCode } = connection
  return kind === 'whatsapp' && state === 'linking' && !qr && !pairingCode && !asksForPasskey(connection)
}

interface ConnectionCardProps {
  connection: Connection
  /** Why the connection could not be read again. */
  error: Error | null
  onRetry: () => void
}

/** The state of the connection, and the remedy if it needs one. */
export function ConnectionCard({ connection, error, onRetry }: ConnectionCardProps) {
  const words = useWords()
  const isAway = useAwaySince() !== null
  const isHindered = isLinkingHindered(connection)
  const isOutdated = isAway || error !== null
  return (
    <section className={classes.card} data-tone={isOutdated ? 'quiet' : toneOf(connection, isHindered)}>
      <div className={classes.top}>
        <ConnectionBadge state={connection.state} isOutdated={isOutdated} />
        {!isOutdated && (
          <span className={classes.since}>
            <Ago at={connection.since} />
          </span>
        )}
      </div>
      {isAway && <p className={classes.text}>{words.connection.unknown}</p>}
      {!isAway && error && (
        <div className={classes.text}>
          <Problem error={error} onRetry={onRetry} />
        </div>
      )}
      {!isOutdated && <Description connection={connection} isHindered={isHindered} />}
      {/* Stays during an outage: it holds what a person is typing, and a linking link that is shown only once. */}
      <NextStep connection={connection} isHindered={isHindered} isOutdated={isOutdated} />
    </section>
  )
}

/** The state in words, with its reason or remedy. */
function Description({ connection, isHindered }: { connection: Connection; isHindered: boolean }) {
  const words = useWords()
  const { state, kind, cause, simulated } = connection
  const remedies: Partial<Record<ConnectionCause, string>> = words.connection.remedies
  const remedy = cause && remedies[cause]
  const reason = (cause && words.connection.reasons[cause]) ?? connection.reason
  const isOperator = useMay('operator')
  const isFailed = hasFailedToLink(connection)
  const isSandboxLinking = kind === 'sandbox' && ['linking', 'connecting', 'unlinked'].includes(state) && !isFailed
  const showsReason =
    state === 'stopped' ||
    state === 'disconnected' ||
    state === 'reconnecting' ||
    state === 'logged_out' ||
    cause === 'restricted' ||
    (isWaitingForCode(connection) && (isOperator || isHindered))
  // For operators, `Linking` shows the failure in place of the code.
  const showsFailure = isOperator && kind === 'whatsapp' && isFailed
  const isAskedForPasskey = kind === 'whatsapp' && asksForPasskey(connection)
  return (
    <>
      <p className={classes.text}>
        {isHindered
          ? words.connection.noCode
          : isSandboxLinking
            ? words.connection.sandboxLinking
            : words.connection.states[state].text}
      </p>
      {remedy && !showsFailure && !isAskedForPasskey && cause !== 'code_expired' && (
        <p className={classes.text}>
          {remedy} <GuideLink to="situations" />
        </p>
      )}
      {!remedy && (showsReason || (isSandboxLinking && state === 'unlinked')) && (
        <p className={classes.reason}>
          {words.connection.reason}: {reason}
        </p>
      )}
      {connection.sameNumber.length > 0 && (
        <p className={classes.text}>
          {words.connection.sameNumber(connection.sameNumber.map(({ name }) => `“${name}”`).join(', '))}
        </p>
      )}
      {simulated && kind === 'whatsapp' && <p className={classes.reason}>{words.connection.simulated}</p>}
      {isSandboxLinking && state !== 'unlinked' && <Waiting text={words.connection.states[state].name} />}
      {isHindered && connection.retryAt && (
        <p className={classes.reason}>
          {words.connection.nextTry} <Ago at={connection.retryAt} />
        </p>
      )}
    </>
  )
}

interface NextStepProps {
  connection: Connection
  isHindered: boolean
  isOutdated: boolean
}

/** The actions for the connection. For viewers, a sentence that says which roles have them. */
function NextStep({ connection, isHindered, isOutdated }: NextStepProps) {
  const words = useWords()
  const { state, kind, instanceId, cause } = connection
  const remedies: Partial<Record<ConnectionCause, string>> = words.connection.remedies
  const isOperator = useMay('operator')
  const connect = useConnect(instanceId)
  const isRequested = useIsRequested(connection)
  const isAskedForPasskey = kind === 'whatsapp' && asksForPasskey(connection)
  const needsLink = kind === 'whatsapp' && ['linking', 'unlinked', 'logged_out'].includes(state)
  const canResume =
    state === 'stopped' || (kind === 'sandbox' && (state === 'logged_out' || hasFailedToLink(connection)))
  if (!isOperator) {
    const text = needsLink ? words.connection.othersLink : canResume && words.connection.othersResume
    return text && !isOutdated && <p className={classes.text}>{text}</p>
  }
  return (
    <>
      {isAskedForPasskey && <PasskeyOfInstance connection={connection} />}
      {needsLink && !isHindered && !isAskedForPasskey && (
        <Linking
          connection={connection}
          connect={connect}
          isRequested={isRequested}
          isOutdated={isOutdated}
          failure={cause !== null && LINKING_FAILURES.has(cause) ? (remedies[cause] ?? null) : null}
        />
      )}
      {needsLink && <HandOut instanceId={instanceId} />}
      {canResume && <Resume connection={connection} connect={connect} />}
    </>
  )
}
