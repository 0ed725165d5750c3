# Trains (docs/howto/deploy.md):
#   docker build -t tolka .
#   docker run --gpus all --user "$(id -u):$(id -g)" -v "$PWD:/work" tolka mt-train corpus=files ...
# torch's wheels bring CUDA with them: for a GPU the host needs its driver and the NVIDIA Container Toolkit, and the base
# nothing. For a driver that is too old for them, or for no GPU at all, pip.conf names PyTorch's index of other builds.
ARG BASE=python:3.12-slim

FROM ${BASE}
ARG EXTRAS=plots,langid,ctranslate2,documents
# pip's settings, where an index of one's own is used: --secret id=pip,src=pip.conf
RUN --mount=type=bind,target=/src --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv /opt/tolka \
    && /opt/tolka/bin/pip install --no-cache-dir "/src[${EXTRAS}]"
ENV PATH=/opt/tolka/bin:$PATH HOME=/tmp
USER 1000:1000
WORKDIR /work
CMD ["mt-train", "--help"]
