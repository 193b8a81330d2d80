import type { ReactNode } from 'react'
import { type Tone, useKnownTone } from '../badges.tsx'
import classes from './timeline.module.css'

export function Timeline({ children }: { children: ReactNode }) {
  return <ol className={classes.line}>{children}</ol>
}

interface StepProps {
  title: ReactNode
  at?: ReactNode
  tone?: Tone
  /** True if the step has not been reached. It is drawn hollow. */
  open?: boolean
  children?: ReactNode
}

export function Step({ title, at, tone = 'quiet', open = false, children }: StepProps) {
  const shown = useKnownTone(tone)
  return (
    <li className={classes.step} data-tone={shown} data-open={open}>
      <div className={classes.head}>
        <strong>{title}</strong>
        {at && <span className={classes.at}>{at}</span>}
      </div>
      {children && <div className={classes.body}>{children}</div>}
    </li>
  )
}
