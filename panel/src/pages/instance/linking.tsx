import { Button, Group, SegmentedControl, TextInput } from '@mantine/core'
import type { UseMutationResult } from '@tanstack/react-query'
import { useState } from 'react'
import type { Connection, ConnectionCause } from '../../api/types.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { QrCode } from '../../components/qr-code.tsx'
import { useNow } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { Code } from './code.tsx'
import classes from './linking.module.css'

/** Why the last attempt to link a number failed. No code is requested until a person asks for one. */
export const LINKING_FAILURES: ReadonlySet<ConnectionCause> = new Set([
  'passkey_required',
  'passkey_refused',
  'passkey_expired',
  'identity_rejected',
  'linking_unfinished',
  'phone_offline',
  'device_limit',
  'version_refused',
  'unreachable',
  'proxy_failed',
  'sandbox_off',
  'thread_crashed',
] as const satisfies readonly ConnectionCause[])

const NO_CODE = { qr: null, pairingCode: null }
const NUMBER = /^[1-9][0-9]{6,14}$/

type Codes = Pick<Connection, 'state' | 'cause' | 'qr' | 'qrExpiresAt' | 'pairingCode'>

interface LinkingProps {
  connection: Codes
  connect: UseMutationResult<unknown, Error, string | undefined>
  /** A code was requested that the connection does not show yet. */
  isRequested: boolean
  /** Hides the codes, which WhatsApp may have replaced. */
  isOutdated?: boolean
  /** Why the last attempt failed, in words. */
  failure: string | null
}

export function Linking({ connection, connect, isRequested, isOutdated = false, failure }: LinkingProps) {
  const words = useWords()
  const { state } = connection
  const [way, setWay] = useState<'qr' | 'code'>(connection.pairingCode ? 'code' : 'qr')
  const { qr, pairingCode } = isOutdated ? NO_CODE : connection
  const isLinking = state === 'linking'
  const isExpired = !isLinking && !isRequested && connection.cause === 'code_expired'

  return (
    <div className={classes.linking}>
      <SegmentedControl
        value={way}
        onChange={value => setWay(value === 'code' ? 'code' : 'qr')}
        data={[
          { value: 'qr', label: words.linking.byQr },
          { value: 'code', label: words.linking.byCode },
        ]}
      />
      {isExpired && (
        <div className={classes.expired} role="alert">
          <strong>{words.linking.expired}</strong>
          <span>{words.linking.expiredText}</span>
        </div>
      )}
      {failure && !isLinking && !isRequested && (
        <div className={classes.expired} role="alert">
          <strong>{words.linking.failed}</strong>
          <span>{failure}</span>
        </div>
      )}
      {isLinking && connection.cause === 'new_code_asked' && <p role="status">{words.linking.newCodeAsked}</p>}
      {way === 'qr' ? (
        <div className={classes.columns}>
          {isLinking && qr ? (
            <Qr connection={connection} qr={qr} />
          ) : isRequested || (isLinking && !pairingCode) ? (
            <Waiting text={words.linking.waitingForQr} />
          ) : (
            <Button onClick={() => connect.mutate(undefined)} loading={connect.isPending}>
              {isExpired || pairingCode ? words.linking.newCode : words.connection.link}
            </Button>
          )}
          <Steps steps={words.linking.steps} />
        </div>
      ) : (
        <div className={classes.columns}>
          {isLinking && pairingCode ? (
            <Code label={words.linking.codeLabel} code={pairingCode} />
          ) : (
            <PhoneForm connect={connect} waits={isRequested || (isLinking && !qr)} />
          )}
          <Steps steps={words.linking.codeSteps} />
        </div>
      )}
      <Problem error={connect.error} />
    </div>
  )
}

function Qr({ connection, qr }: { connection: Codes; qr: string }) {
  const words = useWords()
  const now = useNow(1_000)
  const secondsLeft = connection.qrExpiresAt
    ? Math.max(0, Math.ceil((Date.parse(connection.qrExpiresAt) - now) / 1000))
    : null
  return (
    <div className={classes.qr}>
      <QrCode text={qr} label={words.linking.qrLabel} />
      {secondsLeft !== null && (
        <p className={classes.countdown} aria-live="off">
          {words.linking.expiresIn(secondsLeft)}
        </p>
      )}
    </div>
  )
}

function PhoneForm({ connect, waits }: { connect: LinkingProps['connect']; waits: boolean }) {
  const words = useWords()
  const [phone, setPhone] = useState('')
  const [isTried, setTried] = useState(false)
  const digits = phone.replace(/[\s()+.-]/g, '')
  const isValid = NUMBER.test(digits)
  return (
    <form
      className={classes.form}
      onSubmit={event => {
        event.preventDefault()
        setTried(true)
        if (isValid) connect.mutate(digits)
      }}
    >
      <TextInput
        label={words.linking.numberLabel}
        description={words.linking.numberHint}
        inputMode="tel"
        autoComplete="tel"
        value={phone}
        onChange={event => setPhone(event.currentTarget.value)}
        error={isTried && !isValid && words.linking.numberWrong}
      />
      <Group mt="md">
        <Button type="submit" loading={connect.isPending}>
          {words.linking.getCode}
        </Button>
      </Group>
      {waits && connect.isSuccess && <Waiting text={words.linking.waitingForCode} />}
    </form>
  )
}

function Steps({ steps }: { steps: readonly string[] }) {
  const words = useWords()
  return (
    <div>
      <ol className={classes.steps}>
        {steps.map(step => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <p className={classes.note}>{words.linking.lookingAfter}</p>
    </div>
  )
}
