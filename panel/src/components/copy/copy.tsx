import { ActionIcon, Button, CopyButton, Tooltip } from '@mantine/core'
import { useWords } from '../../i18n/i18n.tsx'
import { CheckIcon, CopyIcon } from '../icons.tsx'
import classes from './copy.module.css'

const SHOWN_MS = 1_800

/** @param what completes the label "Copy …" for screen readers */
export function CopyIconButton({ value, what }: { value: string; what: string }) {
  const words = useWords()
  return (
    <CopyButton value={value} timeout={SHOWN_MS}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? words.common.copied : words.common.copy(what)}>
          <ActionIcon
            variant="subtle"
            color={copied ? 'green' : 'gray'}
            onClick={copy}
            aria-label={copied ? words.common.copied : words.common.copy(what)}
          >
            {copied ? <CheckIcon size={16} /> : <CopyIcon size={16} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  )
}

/** A value to paste elsewhere. */
export function CopyField({ label, value, hidden = false }: { label: string; value: string; hidden?: boolean }) {
  return (
    <div className={classes.field}>
      <span className={classes.label}>{label}</span>
      <code className={classes.value}>{hidden ? '•'.repeat(24) : value}</code>
      <CopyIconButton value={value} what={label} />
    </div>
  )
}

/** Text to paste into a terminal or an editor. */
export function CodeBlock({ code, label }: { code: string; label: string }) {
  const words = useWords()
  return (
    <div className={classes.block}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard (WCAG 2.1.1) */}
      <section className={classes.code} tabIndex={0} aria-label={label}>
        <pre>{code}</pre>
      </section>
      <CopyButton value={code} timeout={SHOWN_MS}>
        {({ copied, copy }) => (
          <Button
            className={classes.copy}
            size="compact-xs"
            variant="default"
            onClick={copy}
            leftSection={copied ? <CheckIcon size={14} /> : <CopyIcon size={14} />}
          >
            {copied ? words.common.copied : words.common.copyWord}
            <span className="visually-hidden"> {label}</span>
          </Button>
        )}
      </CopyButton>
    </div>
  )
}
