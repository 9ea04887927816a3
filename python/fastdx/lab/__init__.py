"""The laboratory: attackers, evaluations, comparisons, audits, published laws, and figures.

The rest of fastdx does not import it, except for the commands ``calibrate``, ``compare`` and
``evaluate``. Import its modules by name: ``from fastdx.lab import attacks``.
"""
