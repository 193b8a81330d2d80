import { Button, Group, Textarea } from '@mantine/core'
import { useState } from 'react'
import type { Connection } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { CodeBlock } from '../../components/copy/copy.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { useNow } from '../../components/time.tsx'
import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'
import program from '../../snippets/passkey.js?raw'
import { Code } from './code.tsx'
import classes from './linking.module.css'

type Step = NonNullable<Connection['passkey']>
type Request = NonNullable<Step['request']>
export type Assertion = { id: string; rawId: string; type: string; response: Record<string, string | null> }

interface PasskeyProps {
  connection: Pick<Connection, 'state' | 'cause' | 'passkey'>
  /** The name of the instance. The box on WhatsApp's page shows it, to say who asks for the passkey. */
  instance: string
  answer(assertion: Assertion): Promise<unknown>
  confirm(): Promise<unknown>
  /** Ends the linking. Null if this person may not end it. */
  cancel: (() => Promise<unknown>) | null
}

/** True while a number is being linked with its passkey. */
export function asksForPasskey({ state, cause, passkey }: PasskeyProps['connection']): boolean {
  return state === 'linking' && (passkey !== null || cause === 'passkey_sent' || cause === 'passkey_required')
}

/** The steps in which the account's passkey answers, in place of the QR code. */
export function Passkey(props: PasskeyProps) {
  const words = useWords()
  const { passkey, cause } = props.connection
  if (passkey?.stage === 'code' && passkey.code) return <Compare {...props} code={passkey.code} />
  if (passkey?.request)
    return <Ask key={passkey.request.challenge} {...props} step={passkey} request={passkey.request} />
  return <Waiting text={cause === 'passkey_sent' ? words.passkey.sent : words.passkey.others} />
}

function Ask({ connection, instance, answer, step, request }: PasskeyProps & { step: Step; request: Request }) {
  const words = useWords()
  const now = useNow(1_000)
  const [text, setText] = useState('')
  const [isTried, setTried] = useState(false)
  const send = useAction({ mutationFn: answer })
  const assertion = parseAssertion(text)
  const minutesLeft = Math.max(0, Math.ceil((Date.parse(step.expiresAt) - now) / 60_000))
  return (
    <div className={classes.passkey}>
      <strong>{words.passkey.title}</strong>
      {connection.cause === 'passkey_refused' && <Notice tone="bad">{words.passkey.refused}</Notice>}
      <p>
        {words.passkey.text} {words.passkey.experimental}
      </p>
      <ol className={classes.steps}>
        {words.passkey.steps.map(one => (
          <li key={one}>{one}</li>
        ))}
      </ol>
      <CodeBlock code={programFor(request, instance, words)} label={words.passkey.program} />
      <form
        className={classes.form}
        onSubmit={event => {
          event.preventDefault()
          setTried(true)
          if (assertion) send.mutate(assertion)
        }}
      >
        <Textarea
          label={words.passkey.answer}
          description={words.passkey.answerHint}
          rows={4}
          spellCheck={false}
          autoComplete="off"
          value={text}
          onChange={event => setText(event.currentTarget.value)}
          error={isTried && !assertion && words.passkey.answerWrong}
        />
        <Group mt="md">
          <Button type="submit" loading={send.isPending}>
            {words.passkey.send}
          </Button>
          <span className={classes.countdown}>{words.passkey.timeLeft(minutesLeft)}</span>
        </Group>
      </form>
      <Problem error={send.error} />
    </div>
  )
}

function Compare({ code, confirm, cancel }: PasskeyProps & { code: string }) {
  const words = useWords()
  const confirming = useAction({ mutationFn: confirm })
  const cancelling = useAction({ mutationFn: async () => cancel?.() })
  return (
    <div className={classes.passkey}>
      <Code label={words.passkey.compare} code={code} />
      <p>
        {words.passkey.compareText} {!cancel && words.passkey.differHint}
      </p>
      <Group>
        <Button onClick={() => confirming.mutate()} loading={confirming.isPending}>
          {words.passkey.same}
        </Button>
        {cancel && (
          <Button variant="default" onClick={() => cancelling.mutate()} loading={cancelling.isPending}>
            {words.passkey.differ}
          </Button>
        )}
      </Group>
      <Problem error={confirming.error ?? cancelling.error} />
    </div>
  )
}

/** The program for WhatsApp's page, with its request and its texts. */
export function programFor(request: Request, instance: string, { passkey: { box } }: Words): string {
  // A replacement in a string could contain patterns.
  return program.replace('ASKED', () => JSON.stringify({ request, instance, words: box }))
}

/** Parses the answer that the program shows. Null if something else was pasted. */
function parseAssertion(text: string): Assertion | null {
  try {
    const given = JSON.parse(text.trim())
    return typeof given.id === 'string' && typeof given.response?.signature === 'string' ? given : null
  } catch {
    return null
  }
}
